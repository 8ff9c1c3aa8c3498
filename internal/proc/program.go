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

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

const firstChildFD = 3

// program is an opened and checked program: what is executed is what was hashed, as far as the system allows.
type program struct {
	path string   // the operator's name for it
	file *os.File // the program itself
	own  bool     // file is ours to close
	sum  string   // hex, or "" if it is not known

	argv     []string
	inherit  []*os.File // the files that the child gets as descriptors from firstChildFD
	byHandle int        // the index in inherit of the file to execute; -1 means to execute execPath
	execPath string

	interpreter *os.File // a pinned one, ours to close
	script      string   // the path of a script's interpreter, or ""
}

// openProgram opens and checks the program of s and plans its execution. Errors are *phases.Error.
func openProgram(ctx context.Context, s Spec) (*program, error) {
	if InsidePlugin() && isOwnBinary(s) {
		return nil, phases.Errorf(phases.CauseExecFailed, "%s is this plugin process's own program: a plugin does not start itself", s.Path)
	}
	p := &program{path: s.Path, file: s.File, byHandle: -1, execPath: s.Path}
	for _, step := range []func(context.Context, Spec) error{p.open, p.check, p.plan} {
		if err := step(ctx, s); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func isOwnBinary(s Spec) bool {
	if s.File != nil {
		return true
	}
	self, _ := os.Executable()
	a, errA := os.Stat(self)
	b, errB := os.Stat(s.Path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// openRegular stats first, because opening a device may have effects; O_NONBLOCK covers a FIFO put there meanwhile.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (p *program) open(_ context.Context, s Spec) error {
	if p.file != nil {
		return nil
	}
	var err error
	if p.file, err = openRegular(s.Path); err != nil {
		return resourceOr(phases.CauseExecFailed, err, "plugin program cannot be opened: %w")
	}
	p.own = true
	if s.AllowUnsafePath {
		return nil
	}
	return checkPath(s.Path, p.file)
}

// check verifies the checksums of the program and of everything pinned.
func (p *program) check(ctx context.Context, s Spec) error {
	if s.SHA256 != "" {
		if err := verify(ctx, p.file, s.Path, s.SHA256); err != nil {
			return err
		}
		p.sum = strings.ToLower(s.SHA256)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Pins)) {
		f, err := openRegular(path)
		if err != nil {
			return resourceOr(phases.CauseChecksumMismatch, err, "pinned file cannot be opened: %w")
		}
		err = verify(ctx, f, path, s.Pins[path])
		closeQuietly(f)
		if err != nil {
			return err
		}
	}
	return nil
}

// verify compares an open file with its checksum.
func verify(ctx context.Context, f *os.File, path, want string) error {
	sum, err := hashFile(ctx, f)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return resourceOr(phases.CauseChecksumMismatch, err, "%s cannot be read: %w", path)
	case !strings.EqualFold(sum, want):
		return phases.Errorf(phases.CauseChecksumMismatch, "%s has the checksum %s, not %s as pinned", path, sum, strings.ToLower(want))
	}
	return nil
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
		name = fmt.Sprintf("/proc/self/fd/%d", firstChildFD+len(p.inherit)) // as the child sees it
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
	if err := verify(ctx, f, interpreter, want); err != nil {
		return err
	}
	p.argv = slices.Concat([]string{interpreter}, arg, []string{name}, s.Args)
	p.useHandle(f)
	return nil
}

// useHandle has the child inherit and execute f.
func (p *program) useHandle(f *os.File) {
	if !canExecHandle() {
		return
	}
	p.byHandle = len(p.inherit)
	p.inherit = append(p.inherit, f)
}

// target returns the path to execute: for a descriptor a link in dir, so that ps shows the plugin's name.
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

// confined describes the program to package sandbox. done closes what was opened for that.
func (p *program) confined(directory string) (c sandbox.Program, done func(), err error) {
	c = sandbox.Program{Files: []*os.File{p.file}, Script: p.script != "", Dir: directory}
	f := p.interpreter
	done = func() {}
	if f == nil && p.script != "" {
		if f, err = openRegular(p.script); err != nil {
			return c, done, err
		}
		done = func() { closeQuietly(f) }
	}
	if f != nil {
		c.Files = append(c.Files, f)
	}
	return c, done, nil
}

// close is safe to call twice.
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

// formatHint says what the program was built for if its file is an ELF binary.
func (p *program) formatHint() string {
	f, err := elf.NewFile(p.file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("it is built for %s (%s), this machine is %s", f.Machine, f.Class, runtime.GOARCH)
}

// readShebang reads the first line of a script as the kernel does: an interpreter and at most one argument.
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

// hashFile returns the SHA-256 in hex, without moving the file's offset. Disks may be slow: it stops with ctx.
func hashFile(ctx context.Context, f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	section := io.NewSectionReader(f, 0, info.Size())
	h := sha256.New()
	for err == nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		_, err = io.CopyN(h, section, 1<<20)
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// closeQuietly closes a file that was only read, or whose close error does not matter.
func closeQuietly(c io.Closer) { _ = c.Close() }

// startError explains a failed start of this program; nil stays nil.
func (p *program) startError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*os.PathError](err); ok && e.Op == "fork/exec" {
		if IsResource(err) {
			return resourceOr(phases.CauseUnavailable, e.Err, "process for %s: %w", p.path)
		}
		return execError(p.path, p.formatHint(), e.Err)
	}
	return resourceOr(phases.CauseInternal, err, "process for %s: %w", p.path)
}
