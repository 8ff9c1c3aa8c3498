package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
)

// Loader reads configurations. The zero value reads them with the environment
// of the process.
type Loader struct {
	// LookupEnv finds the variables of ${NAME} and PATH; nil is os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
	// AllowUnpinned accepts commands without checksum in a file that requires
	// them: for the command that is about to write them.
	AllowUnpinned bool

	_ struct{}
}

// Load reads a configuration file. Mistakes in it are [Errors]. A file that
// cannot be read, is no regular file or is larger than 1 MiB is an error too;
// Load never waits for a pipe or a device.
func Load(path string) (*Config, error) { return Loader{}.Load(path) }

// Parse reads the text of a configuration. The path stands in messages, and
// relative commands are resolved against its folder. Mistakes are [Errors].
func Parse(data []byte, path string) (*Config, error) { return Loader{}.Parse(data, path) }

// Load is [Load] with the loader's environment.
func (l Loader) Load(path string) (*Config, error) {
	data, err := readFile(path, func(fs.FileInfo) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return l.Parse(data, path)
}

// readFile reads a regular file of at most maxFile bytes, which may be refused
// before anything is read of it.
func readFile(path string, check func(fs.FileInfo) error) (data []byte, err error) {
	// O_NONBLOCK: a pipe that takes the file's place after any check would make
	// opening wait for a writer.
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
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	if err := check(info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Parse is [Parse] with the loader's environment.
func (l Loader) Parse(data []byte, path string) (*Config, error) {
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
	d := &decoder{report: r, rules: rules(), phases: phases.Standard().Names(), lookup: l.LookupEnv}
	d.value(root, reflect.ValueOf(c).Elem(), rule{})
	(&checker{decoder: d, config: c, dir: dir, allowUnpinned: l.AllowUnpinned}).check(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// document reads the text of a YAML file as far as its nodes. Begins is what the
// file begins with, for who has an empty one.
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

// checkCharacters refuses what YAML does not allow in a file: bytes that are not
// UTF-8, and control characters.
func checkCharacters(r *report) bool {
	for number, line := range r.lines {
		column := 0
		for i, c := range line {
			column++
			if c == utf8.RuneError {
				if _, size := utf8.DecodeRuneInString(line[i:]); size == 1 {
					r.addf(number+1, column, "the file is not UTF-8")
					return false
				}
			}
			if c < ' ' && c != '\t' || c == 0x7F {
				r.addf(number+1, column, "control character U+%04X", c)
				return false
			}
		}
	}
	return true
}
