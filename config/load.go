package config

import (
	"cmp"
	_ "embed" // for template.yaml
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Loader reads configurations. The zero value reads them with the environment of the process.
type Loader struct {
	// LookupEnv finds the variables of ${NAME} and PATH; nil is os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
	// AllowUnpinned accepts commands without a required checksum, for the command that writes them.
	AllowUnpinned bool

	_ struct{}
}

// Load reads a configuration file. Mistakes in it are [Errors]. The file must be a
// regular one of at most 1 MiB; Load never waits for a pipe or a device.
func Load(path string) (*Config, error) { return Loader{}.Load(path) }

// Parse reads the text of a configuration. The path is for messages, and its directory
// for relative commands. Mistakes are [Errors].
func Parse(data []byte, path string) (*Config, error) { return Loader{}.Parse(data, path) }

// Load is [Load] with the loader's environment.
func (l Loader) Load(path string) (*Config, error) {
	c, err := l.Inspect(path)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readFile reads a regular file up to maxFile bytes and one more. check may refuse it.
func readFile(path string, check func(fs.FileInfo) error) (data []byte, err error) {
	// O_NONBLOCK: opening a pipe would wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if err := check(info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Parse is [Parse] with the loader's environment.
func (l Loader) Parse(data []byte, path string) (*Config, error) {
	c, err := l.inspect(data, path)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Inspect is [Loader.Load] for further checks: beside [Errors] it may return what it could read, which must not be used
// for anything else.
func (l Loader) Inspect(path string) (*Config, error) {
	data, err := readFile(path, func(fs.FileInfo) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return l.inspect(data, path)
}

func (l Loader) inspect(data []byte, path string) (*Config, error) {
	if l.LookupEnv == nil {
		l.LookupEnv = os.LookupEnv
	}
	r, root, err := document(data, path, "version: 1")
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c := &Config{source: &source{report: r, root: root}}
	d := &decoder{report: r, rules: keyRules, lookup: l.LookupEnv}
	d.value(root, reflect.ValueOf(c).Elem(), rule{})
	(&checker{decoder: d, config: c, dir: dir, allowUnpinned: l.AllowUnpinned}).check(root)
	return c, r.err()
}

// document parses the text of a YAML file. begins is a hint for empty files.
func document(data []byte, path, begins string) (*report, *node, error) {
	if len(data) > maxFile {
		return nil, nil, Errors{{File: path, Message: "the file is larger than 1 MiB"}}
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	r := newReport(path, text)
	if !checkCharacters(r) {
		return nil, nil, r.err()
	}
	root := parseYAML(text, r)
	if root == nil || root.kind == nullNode {
		if r.count == 0 {
			r.addf(1, 1, "the file is empty; it begins with %s", begins)
		}
		return nil, nil, r.err()
	}
	return r, root, nil
}

func checkCharacters(r *report) bool {
	for number, line := range r.lines {
		for i, c := range line {
			if c == utf8.RuneError && !strings.HasPrefix(line[i:], "\uFFFD") {
				r.addf(number+1, utf8.RuneCountInString(line[:i])+1, "the file is not UTF-8")
				return false
			}
			if c < ' ' && c != '\t' || c == 0x7F {
				r.addf(number+1, utf8.RuneCountInString(line[:i])+1, "control character U+%04X", c)
				return false
			}
		}
	}
	return true
}

//go:embed template.yaml
var template string

// Template returns a commented grapnel.yaml to begin with. It is valid and names every key. The caller may change it.
func Template() []byte { return []byte(template) }

// ResolveCommand returns the absolute path of a plugin's command. Relative paths start at dir, the directory of the
// configuration file. A bare name is looked up in the absolute directories of the variable PATH.
//
// The error, such as fs.ErrNotExist or fs.ErrPermission, comes with a path too: for a
// bare name the one in the first directory of PATH, or "".
func ResolveCommand(dir, command string, lookupEnv func(string) (string, bool)) (string, error) {
	if command == "" {
		return "", errors.New("the command is empty")
	}
	if filepath.IsAbs(command) {
		return executable(filepath.Clean(command))
	}
	if filepath.Base(command) != command || command == "." || command == ".." {
		return executable(filepath.Join(dir, command))
	}
	first := ""
	path, _ := lookupEnv("PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		candidate := filepath.Join(dir, command)
		first = cmp.Or(first, candidate)
		if found, err := executable(candidate); err == nil {
			return found, nil
		}
	}
	return first, fmt.Errorf(noSuchCommand, command, fs.ErrNotExist)
}

// Absent returns an error for a command that is a bare name and stands in no directory of PATH: Path is then one that
// nobody wrote.
func (p *Plugin) Absent() error {
	if _, err := os.Stat(p.Path); p.Command == "" || filepath.Base(p.Command) != p.Command || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf(noSuchCommand, p.Command, fs.ErrNotExist)
}

const noSuchCommand = "%q is in no directory of PATH: %w"

func executable(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		if lookup, ok := errors.AsType[*exec.Error](err); ok {
			err = lookup.Err // it repeats the path
		}
		return path, fmt.Errorf("%s cannot be executed: %w", path, err)
	}
	return found, nil
}
