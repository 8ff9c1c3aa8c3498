package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
)

// hookFile is a file in which an agent's hooks are configured, and what becomes of it.
type hookFile struct {
	path string // as the agent knows it
	real string // without links
	mode fs.FileMode
	data []byte   // nil if there is no file
	dirs []string // the directories above it that are not there, the innermost first

	inProject bool // what links lead out of is not followed

	place install.Place
	was   []byte // without our entries
	after []byte // nil for no file
}

func openHookFile(place install.Place, scope agent.Scope) (*hookFile, error) {
	path := filepath.FromSlash(place.Path)
	f := &hookFile{path: path, place: place, mode: 0o600, inProject: scope != agent.User}
	if scope == agent.Project {
		f.mode = 0o644
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, usagef("%s is a link to a file that is not there; make that file, or remove the link", path)
		}
		f.real, f.dirs = realPath(path), missingDirs(path)
		return f, nil
	}
	if err != nil {
		return nil, usagef("%s: %w", path, unwrapPath(err))
	}
	info, err := os.Stat(real)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file; move it away")
	}
	if err == nil {
		f.data, err = os.ReadFile(real)
	}
	if err != nil {
		return nil, usagef("%s: %w", path, unwrapPath(err))
	}
	f.real, f.mode, f.after = real, info.Mode().Perm(), f.data
	if f.data == nil {
		f.data = []byte{}
	}
	return f, nil
}

func (f *hookFile) changed() bool {
	return !bytes.Equal(f.data, f.after) || (f.data == nil) != (f.after == nil)
}

// install plans to have what is wanted in the file, in place of what is there of ours; with nothing wanted, to uninstall.
func (f *hookFile) install(w *install.Wanted) error {
	if f.after, f.was = f.data, f.data; f.isNobodys(w) {
		return nil
	}
	now, err := f.parse(f.data)
	if err != nil {
		return err
	}
	if now.Has(w) {
		return nil
	}
	f.was = f.without(now)
	edited, err := f.parse(f.was)
	if err != nil {
		return err
	}
	if f.after = f.was; edited.Has(w) {
		return nil
	}
	if err := edited.Add(w); err != nil {
		return f.refused(err)
	}
	f.after = edited.Bytes()
	return nil
}

// isNobodys reports whether nothing is wanted in a file that has nothing of ours: it need not be one that can be read.
func (f *hookFile) isNobodys(w *install.Wanted) bool {
	return !f.place.Whole && len(w.Entries) == 0 && w.Server == nil && len(w.Files) == 0 && !bytes.Contains(f.data, []byte("grapnel"))
}

func (f *hookFile) parse(data []byte) (install.Document, error) {
	parsed, err := f.place.Parse(data)
	if err != nil {
		return nil, f.refused(err)
	}
	return parsed, nil
}

func (f *hookFile) refused(err error) error {
	return usagef("%s: %w; correct it first, nothing was changed", f.path, err)
}

// without is the file without what is ours: byte for byte as it was before, if nothing else has changed it since.
func (f *hookFile) without(parsed install.Document) []byte {
	if u := f.readUndo(); u != nil && u.SHA256 == sum(f.data) {
		was, err := udiff.ApplyBytes(f.data, u.edits())
		if err == nil && u.Made && len(was) == 0 {
			return nil
		}
		if err == nil {
			return was
		}
	}
	if !parsed.Remove() {
		return f.data
	}
	return parsed.Bytes()
}

// write writes what was planned. [hookFile.mayReplace] has allowed it.
func (f *hookFile) write() error {
	if !f.changed() {
		return nil
	}
	if f.after == nil {
		return f.remove()
	}
	if bytes.Equal(f.after, f.was) {
		if err := f.forget(); err != nil {
			return err
		}
	} else if err := f.remember(); err != nil {
		return err
	}
	dirMode := fs.FileMode(0o700)
	if f.mode&0o044 != 0 {
		dirMode = 0o755
	}
	if err := writeBelow(f.real, f.after, dirMode, f.mode); err != nil {
		return errors.Join(err, f.forget()) // nothing was installed
	}
	return nil
}

// writeBelow writes a file, and makes the directories that it needs.
func writeBelow(path string, data []byte, dirMode, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return unable(err)
	}
	return wrapUnable(replaceFile(path, data, mode))
}

// remove removes a file that has nothing but ours. Afterwards dirs are the directories that were made for it.
func (f *hookFile) remove() error {
	if u := f.readUndo(); u != nil {
		f.dirs = u.Dirs
	}
	return errors.Join(f.forget(), wrapUnable(os.Remove(f.real)))
}

// removeDirs removes the directories that were made for files which are gone, where nobody has put anything into them.
func removeDirs(files []*hookFile) {
	var dirs []string
	for _, f := range files {
		if f.changed() && f.after == nil {
			dirs = append(dirs, f.dirs...)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) }) // the innermost first
	for _, dir := range dirs {
		_ = os.Remove(dir) // it is not empty, or gone
	}
}

func wrapUnable(err error) error {
	if err == nil {
		return nil
	}
	return unable(err)
}

// mayReplace refuses to replace a file that its owner has protected, that is another user's, or that somebody has changed
// just now.
func (f *hookFile) mayReplace() error {
	if f.inProject && f.changed() {
		if err := staysInProject(f.path); err != nil { // it may be another link by now
			return err
		}
	}
	if f.data == nil || !f.changed() {
		return nil
	}
	info, err := os.Stat(f.real)
	if err != nil {
		return unable(err)
	}
	now, err := os.ReadFile(f.real)
	switch {
	case err != nil:
		return unable(err)
	case f.mode&0o200 == 0:
		return unable(fmt.Errorf("%s is read-only (mode %04o), and is not changed; make it writable first, or put in yourself what --dry-run shows", f.path, f.mode))
	case !ownFile(info):
		return unable(fmt.Errorf("%s belongs to another user, who could not read what replaces it; run this as that user", f.path))
	case !bytes.Equal(now, f.data):
		return unable(fmt.Errorf("%s was changed by another program meanwhile; try again", f.path))
	}
	return nil
}

// undo says how a file was before an installation. It holds what was inserted, and not what people have in their files.
type undo struct {
	File   string     `json:"file"`
	SHA256 string     `json:"sha256"` // of the file with the entries
	Made   bool       `json:"made"`   // there was no file
	Dirs   []string   `json:"dirs"`   // the directories that were not there either, the innermost first
	Edits  []undoEdit `json:"edits"`
	// Hooks are the entries with hooks that were installed; see install.File.Standing.
	Hooks []string `json:"hooks,omitempty"`
}

type undoEdit struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	New   string `json:"new"`
}

func (u *undo) edits() []udiff.Edit {
	list := make([]udiff.Edit, len(u.Edits))
	for i, e := range u.Edits {
		list[i] = udiff.Edit(e)
	}
	return list
}

func (f *hookFile) undoPath() (string, error) {
	dir, err := dataDir()
	return filepath.Join(dir, "installed", sum([]byte(f.real))[:16]+".json"), err
}

func (f *hookFile) readUndo() *undo {
	path, err := f.undoPath()
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var u undo
	if json.Unmarshal(data, &u) != nil || u.File != f.real {
		return nil
	}
	return &u
}

func (f *hookFile) remember() error {
	u := undo{File: f.real, SHA256: sum(f.after), Made: f.was == nil, Dirs: f.dirs}
	if before := f.readUndo(); before != nil && u.Dirs == nil {
		u.Dirs = before.Dirs
	}
	for _, e := range udiff.Bytes(f.after, f.was) {
		u.Edits = append(u.Edits, undoEdit(e))
	}
	if parsed, err := f.place.Parse(f.after); err == nil {
		if file, ok := parsed.(*install.File); ok {
			u.Hooks = file.Standing()
		}
	}
	data, err := encodeJSON(u)
	if err != nil {
		return unable(err)
	}
	path, err := f.undoPath()
	if err != nil {
		return usagef("%w", err)
	}
	return writeBelow(path, data, 0o700, 0o600)
}

// missingDirs are the directories above a file that are not there, the innermost first.
func missingDirs(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, dir)
	}
}

func (f *hookFile) forget() error {
	path, err := f.undoPath()
	if err != nil {
		return usagef("%w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unable(err)
	}
	return nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
