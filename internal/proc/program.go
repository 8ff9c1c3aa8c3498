package proc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// firstChildFD is the descriptor number of a child's first inherited file.
const firstChildFD = 3

// program is an opened and checked program: what will be executed is what was
// hashed, as far as the system allows.
type program struct {
	path string   // the operator's name for it
	file *os.File // the program itself
	own  bool     // file is ours to close
	sum  string   // hex, or "" where nobody asked for it

	// argv is the argument list, argv[0] included.
	argv []string
	// inherit are files that the child gets as descriptors from firstChildFD.
	inherit []*os.File
	// byHandle is the index in inherit of the file to execute, or -1 to execute
	// execPath.
	byHandle int
	execPath string

	interpreter *os.File // a pinned one, ours to close
	script      string   // the path of a script's interpreter, or ""
}

// openProgram opens and checks the program of s, and plans how it is executed.
// Errors are *phases.Error.
func openProgram(ctx context.Context, s Spec) (*program, error) {
	if InsidePlugin() && isOwnBinary(s) {
		return nil, phases.Errorf(phases.CauseExecFailed, "%s is this plugin process's own program: a plugin does not start itself", s.Path)
	}
	p := &program{path: s.Path, file: s.File, byHandle: -1, execPath: s.Path}
	if err := p.open(s); err != nil {
		return nil, err
	}
	err := p.check(ctx, s)
	if err == nil {
		err = p.plan(ctx, s)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// isOwnBinary reports whether s names the program that this process runs.
func isOwnBinary(s Spec) bool {
	if s.File != nil {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(s.Path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// openRegular opens a regular file for reading. It looks first, because opening a
// device may do something, and does not wait for the writer of a pipe that takes the
// file's place meanwhile.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// open opens the file unless the caller brought one.
func (p *program) open(s Spec) error {
	if p.file != nil {
		return nil
	}
	var err error
	if p.file, err = openRegular(s.Path); err != nil {
		return resourceOr(phases.CauseExecFailed, err, "plugin program cannot be opened: %w")
	}
	p.own = true
	if !s.AllowUnsafePath {
		if err := checkPath(s.Path, p.file); err != nil {
			p.close()
			return err
		}
	}
	return nil
}

// check verifies the checksums of the program and of everything pinned.
func (p *program) check(ctx context.Context, s Spec) error {
	if s.SHA256 != "" {
		if err := p.hash(ctx); err != nil {
			return err
		}
		if !strings.EqualFold(p.sum, s.SHA256) {
			return mismatch(s.Path, s.SHA256, p.sum)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.Pins)) {
		if err := checkPin(ctx, path, s.Pins[path]); err != nil {
			return err
		}
	}
	return nil
}

// hash sets the checksum if it is not yet known.
func (p *program) hash(ctx context.Context) error {
	if p.sum != "" {
		return nil
	}
	sum, err := hashFile(ctx, p.file)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return resourceOr(phases.CauseExecFailed, err, "%s cannot be read: %w", p.path)
	}
	p.sum = sum
	return nil
}

// checkPin verifies one pinned file.
func checkPin(ctx context.Context, path, want string) error {
	f, err := openRegular(path)
	if err != nil {
		return resourceOr(phases.CauseChecksumMismatch, err, "pinned file cannot be opened: %w")
	}
	defer closeQuietly(f)
	return checkSum(ctx, f, path, want)
}

// checkSum compares an open file with its checksum.
func checkSum(ctx context.Context, f *os.File, path, want string) error {
	sum, err := hashFile(ctx, f)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return resourceOr(phases.CauseChecksumMismatch, err, "pinned file %s cannot be read: %w", path)
	}
	if !strings.EqualFold(sum, want) {
		return mismatch(path, want, sum)
	}
	return nil
}

// mismatch says which file has which checksum.
func mismatch(path, want, got string) error {
	return phases.Errorf(phases.CauseChecksumMismatch, "%s has the checksum %s, not %s as pinned", path, got, strings.ToLower(want))
}

// plan decides how the program is executed; see the package comment.
func (p *program) plan(ctx context.Context, s Spec) error {
	p.argv = append([]string{s.Path}, s.Args...)
	interpreter, arg, script := readShebang(p.file)
	if !script {
		p.useHandle(p.file)
		return nil
	}
	if info, err := os.Stat(interpreter); err != nil || !info.Mode().IsRegular() {
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: its interpreter %q is absent, or is not a file", s.Path, interpreter)
	}
	p.script = interpreter
	name := s.Path
	if (s.SHA256 != "" || s.File != nil) && canExecHandle() {
		name = p.childFD()
		p.useHandle(p.file)
	}
	want, pinned := s.Pins[interpreter]
	if !pinned || !canExecHandle() {
		return nil
	}
	f, err := openRegular(interpreter)
	if err != nil {
		return resourceOr(phases.CauseExecFailed, err, "interpreter cannot be opened: %w")
	}
	p.interpreter = f
	if err := checkSum(ctx, f, interpreter, want); err != nil {
		return err
	}
	p.argv = slices.Concat([]string{interpreter}, arg, []string{name}, s.Args)
	p.useHandle(f)
	return nil
}

// useHandle lets the child inherit f and execute it. A file that the child
// does not inherit cannot be executed safely: starting the process may reuse
// its number.
func (p *program) useHandle(f *os.File) {
	if !canExecHandle() {
		return
	}
	p.byHandle = len(p.inherit)
	p.inherit = append(p.inherit, f)
}

// childFD is the path, seen from the child, of the next inherited file.
func (p *program) childFD() string {
	return fmt.Sprintf("/proc/self/fd/%d", firstChildFD+len(p.inherit))
}

// target returns the path to execute. With a handle that is a link in dir, so
// that the system shows the process under the plugin's name rather than under
// a number.
func (p *program) target(dir, name string) string {
	if p.byHandle < 0 {
		return p.execPath
	}
	handle := fmt.Sprintf("/proc/self/fd/%d", firstChildFD+p.byHandle)
	link := filepath.Join(dir, name)
	if os.Symlink(handle, link) != nil {
		return handle
	}
	return link
}

// confined describes the program for its confinement. done closes what was
// opened for that.
func (p *program) confined(folder string) (c sandbox.Program, done func(), err error) {
	c = sandbox.Program{Files: []*os.File{p.file}, Script: p.script != "", Folder: folder}
	done = func() {}
	switch {
	case p.interpreter != nil:
		c.Files = append(c.Files, p.interpreter)
	case p.script != "":
		f, err := openRegular(p.script)
		if err != nil {
			return c, done, err
		}
		c.Files, done = append(c.Files, f), func() { closeQuietly(f) }
	}
	return c, done, nil
}

// close closes what openProgram opened. It is safe to call twice.
func (p *program) close() {
	if p.own && p.file != nil {
		closeQuietly(p.file)
		p.file = nil
	}
	if p.interpreter != nil {
		closeQuietly(p.interpreter)
		p.interpreter = nil
	}
}

// formatHint says what a program is built for, when that is another machine.
func (p *program) formatHint() string {
	if p.file == nil {
		return ""
	}
	f, err := elf.NewFile(p.file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("it is built for %s (%s), this machine is %s", f.Machine, f.Class, runtime.GOARCH)
}

// readShebang reads the first line of a script as the kernel does: an
// interpreter and at most one argument.
func readShebang(f io.ReaderAt) (interpreter string, arg []string, ok bool) {
	head := make([]byte, 256)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, false
	}
	line, found := bytes.CutPrefix(head[:n], []byte("#!"))
	if !found {
		return "", nil, false
	}
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	interpreter, rest, _ := strings.Cut(strings.Trim(strings.ReplaceAll(string(line), "\t", " "), " "), " ")
	if rest = strings.Trim(rest, " "); rest != "" {
		arg = []string{rest}
	}
	return interpreter, arg, true
}

// hashFile returns the SHA-256 of a whole file in hex, or ctx's error when that
// ends first: a file may be large and its disk slow. It does not move the
// file's offset, so one file may be hashed by several callers.
func hashFile(ctx context.Context, f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	section := io.NewSectionReader(f, 0, info.Size())
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		n, err := section.Read(buf)
		_, _ = h.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}

// closeQuietly closes a file that was only read, or whose end does not matter.
func closeQuietly(c io.Closer) { _ = c.Close() }

// startError makes the error of a failed start of this program, which may be
// nil, one that callers expect.
func (p *program) startError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*os.PathError](err); ok && e.Op == "fork/exec" {
		if isResource(err) {
			return resourceOr(phases.CauseUnavailable, e.Err, "process for %s: %w", p.path)
		}
		return execError(p.path, p.formatHint(), e.Err)
	}
	return resourceOr(phases.CauseInternal, err, "process for %s: %w", p.path)
}
