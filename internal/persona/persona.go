// Package persona reads and prepares the persona files, which an assistant keeps about itself in a directory of its
// own:
//
//	SOUL.md      what the assistant cares about and how it behaves
//	IDENTITY.md  who it is and what it is for
//	USER.md      what it knows about the person it works for; optional
//
// [Load] reads them once a turn; the compiler cuts and escapes them. [Seed] writes the first two where they are
// absent.
//
// Stability: internal.
package persona

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const optional = "USER.md"

// Statuses of a file without an issue.
const (
	StatusLoaded  = "loaded"
	StatusMissing = "missing"
)

// Codes of diagnostics, and statuses of files that were not read.
const (
	CodeMissing = "missing_file" // SOUL.md or IDENTITY.md is not there
	// CodeReadError: a persona file cannot be read: no permission, a loop of links or a link to nothing.
	CodeReadError = "file_read_error"
	// CodeNotRegular: a directory, pipe, socket or device stands in a persona file's place. It is not opened; links
	// to files are fine.
	CodeNotRegular  = "file_not_regular"
	CodeTruncated   = "file_truncated" // only the first [MaxBytes] of a file were read
	CodeInvalidUTF8 = "invalid_utf8"   // a text was repaired
)

// MaxBytes is how much of one file is read: more than fits into any prompt.
const MaxBytes = 1 << 20

// Files are the persona files of a directory.
type Files struct {
	Soul, Identity, User File
}

// All lists the files in the order of their sections.
func (f *Files) All() []*File { return []*File{&f.Soul, &f.Identity, &f.User} }

// File is one persona file.
type File struct {
	// Text is UTF-8 without NUL, byte order mark or carriage returns; empty if nothing was read.
	Text string
	// Row is the file's row of the manifest; its Chars are those of Text.
	Row manifest.File
	// Diagnostics have the section as Slot. They name no path and are safe for users.
	Diagnostics []phases.Diagnostic
}

// Load reads the persona files of a directory; if dir is empty all are missing. It never fails and never waits for
// another program: pipes and devices are not opened. Links are followed, since people keep such files under version
// control elsewhere.
func Load(dir string) Files {
	read := func(section string) File { return load(dir, sections.Lookup(section).File, section) }
	return Files{Soul: read("soul_core"), Identity: read("identity_core"), User: read("user_persona")}
}

func load(dir, name, section string) File {
	f := File{Row: manifest.File{Path: name, Status: StatusLoaded}}
	data, size, err := []byte(nil), int64(0), fs.ErrNotExist
	if dir != "" {
		data, size, err = read(filepath.Join(dir, name))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Row.Status = StatusMissing
		if name != optional {
			f.diagnose(section, CodeMissing, name+" is not in the persona directory")
		}
		return f
	case errors.Is(err, errNotRegular):
		f.Row.Status = CodeNotRegular
		f.diagnose(section, CodeNotRegular, name+" in the persona directory is not a regular file and was not opened")
		return f
	case err != nil:
		f.Row.Status = CodeReadError
		f.diagnose(section, CodeReadError, name+" in the persona directory cannot be read: "+reason(err))
		return f
	}
	if len(data) > MaxBytes {
		end := MaxBytes
		for end > MaxBytes-utf8.UTFMax && !utf8.RuneStart(data[end]) {
			end--
		}
		data = data[:end]
		f.diagnose(section, CodeTruncated, fmt.Sprintf("%s is too large: only the first %s of its %s bytes were read",
			name, text.Thousands(MaxBytes), text.Thousands(int(size))))
	}
	valid := text.Repair(string(data))
	f.Text = text.Normalize(valid)
	f.Row.Chars = text.Chars(f.Text)
	if valid != string(data) {
		f.diagnose(section, CodeInvalidUTF8, name+" was not UTF-8 without NUL and was repaired")
	}
	return f
}

func (f *File) diagnose(section, code, message string) {
	f.Diagnostics = append(f.Diagnostics, phases.Diagnostic{Code: code, Severity: phases.SeverityWarning, Message: message, Slot: section, SafeForUser: true})
}

// reason is an error without its path, which only the operator should see.
func reason(err error) string {
	if in, ok := errors.AsType[*os.PathError](err); ok {
		err = in.Err
	}
	return err.Error()
}

var (
	errNotRegular = errors.New("not a regular file")
	errDangling   = errors.New("it is a link to a file that is not there")
)

const (
	// readTime bounds reading files that make their reader wait, such as some of the kernel.
	readTime = time.Second
	// openFlags open a pipe without waiting for its writer, and never take a terminal over.
	openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
)

// read returns a file's content, up to MaxBytes and one more, and its size.
//
// It checks before it opens, because opening makes some devices act, and again afterwards, because the file may have
// been replaced; opening does not wait either (openFlags).
func read(path string) (data []byte, size int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linked := os.Lstat(path); linked == nil {
			return nil, 0, errDangling
		}
	}
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	data, err = readAtMost(f, readTime)
	return data, max(info.Size(), int64(len(data))), err
}

func readAtMost(f *os.File, limit time.Duration) ([]byte, error) {
	_ = f.SetReadDeadline(time.Now().Add(limit)) // an error means a file that cannot wait
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

//go:embed seed/SOUL.md seed/IDENTITY.md
var seeds embed.FS // the first texts

// Seed creates the directory, SOUL.md and IDENTITY.md for their owner only, each only where nothing of that name
// exists, not even an empty file or a link to nothing. USER.md is never made.
//
// It returns the paths that it created and those that it kept, also with an error of the disk. Several processes may
// seed one directory at once.
func Seed(dir string) (created, kept []string, err error) {
	if dir == "" {
		return nil, nil, errors.New("persona directory: no directory is named")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("persona directory: %w", err)
	}
	for _, name := range []string{"SOUL.md", "IDENTITY.md"} {
		content, err := seeds.ReadFile("seed/" + name)
		if err != nil {
			return created, kept, fmt.Errorf("persona directory: %w", err)
		}
		path := filepath.Join(dir, name)
		made, err := create(path, content)
		switch {
		case err != nil:
			return created, kept, fmt.Errorf("persona directory: %w", err)
		case made:
			created = append(created, path)
		default:
			kept = append(kept, path)
		}
	}
	return created, kept, nil
}

// Prepare returns the directory's absolute path, seeded if that is wanted; empty stays empty.
func Prepare(dir string, seed bool) (abs string, created []string, err error) {
	switch {
	case dir == "" && seed:
		return "", nil, errors.New("the option SeedPersona needs a PersonaDir")
	case dir == "":
		return "", nil, nil
	}
	if abs, err = filepath.Abs(dir); err != nil {
		return "", nil, fmt.Errorf("persona directory %q: %w", dir, err)
	}
	if seed {
		created, _, err = Seed(abs)
	}
	return abs, created, err
}

// create writes a file where nothing is. One that cannot be written whole is removed.
func create(path string, content []byte) (made bool, err error) {
	// Looking first lets a read-only directory be seeded again.
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, errors.Join(err, os.Remove(path))
	}
	return true, nil
}
