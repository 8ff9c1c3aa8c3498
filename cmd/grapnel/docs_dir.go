package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/tree"
)

// Names of the files of an export.
const (
	docFile   = "AGENTS.md"
	indexName = ".grapnel-tree.json"
	// freshName is a file that is not yet whole. No exported folder begins with a dot.
	freshName = ".grapnel-new"
)

// docsDir is the folder of an export. Nothing in it is a way out of it, and no
// link in it is followed.
type docsDir struct {
	name string
	root *os.Root
	// empty is a folder that was made for this.
	empty string
}

// openDocsDir opens the folder, and makes it where it may be new. For a dry run an
// empty one stands in for it, which goes when it is closed.
func openDocsDir(name string, create, dry bool) (*docsDir, error) {
	d := &docsDir{}
	var err error
	if d.name, err = filepath.Abs(name); err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	at := d.name
	if _, missing := os.Lstat(at); create && errors.Is(missing, fs.ErrNotExist) {
		if dry {
			at, err = os.MkdirTemp("", "grapnel-docs-")
			d.empty = at
		} else {
			d.empty = at
			err = os.MkdirAll(at, 0o700)
		}
	}
	if err == nil {
		d.root, err = os.OpenRoot(at)
	}
	if err != nil {
		return nil, usagef("%s: %w", name, unwrapPath(err))
	}
	return d, nil
}

func (d *docsDir) close() {
	_ = d.root.Close() // nothing waits to be written
	if d.empty != "" {
		_ = os.Remove(d.empty) // unless it is not empty any more
	}
}

// isEmpty reports whether nothing is in the folder.
func (d *docsDir) isEmpty() bool {
	list, err := d.list(".")
	return err == nil && len(list) == 0
}

// list is what is in a folder, sorted by name.
func (d *docsDir) list(dir string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	list, err := f.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// errNoFolder is what stands in the place of a folder.
var errNoFolder = errors.New("something that is no folder is in its place, and is not touched")

// isFolder reports whether a path is a folder, by folders all the way. A link is
// none.
func (d *docsDir) isFolder(dir string) (bool, error) {
	for at := range pathPrefixes(dir) {
		info, err := d.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, unwrapPath(err)
		case !info.IsDir():
			return false, errNoFolder
		}
	}
	return true, nil
}

// pathPrefixes are the folders on the way to a path, and itself.
func pathPrefixes(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, c := range dir + "/" {
			if c == '/' && !yield(dir[:i]) {
				return
			}
		}
	}
}

// makeFolder makes a folder with those above it.
func (d *docsDir) makeFolder(dir string) error {
	if there, err := d.isFolder(dir); there || err != nil {
		return err
	}
	if err := d.root.MkdirAll(dir, 0o700); err != nil {
		return unwrapPath(err)
	}
	return nil
}

// localText is what a file of a document says.
type localText struct {
	there bool
	text  string
	sum   string
}

// maxDocBytes is what a text that may be kept can have: each character in four
// bytes, or a line's end in two.
const maxDocBytes = 4*tree.MaxChars + 3

// readDoc reads the document of a folder. Its error says why the file is none.
func (d *docsDir) readDoc(dir string) (localText, error) {
	if there, err := d.isFolder(dir); !there {
		return localText{}, err
	}
	name := path.Join(dir, docFile)
	info, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return localText{}, nil
	case err != nil:
		return localText{}, unwrapPath(err)
	case info.Mode().Type() == fs.ModeSymlink:
		return localText{there: true}, errors.New("it is a link, and links are not followed")
	case !info.Mode().IsRegular():
		return localText{there: true}, errors.New("it is no regular file")
	}
	f, err := d.root.Open(name)
	if err != nil {
		return localText{there: true}, unwrapPath(err)
	}
	defer func() { _ = f.Close() }() // only read
	// Between looking and opening a link may have taken its place.
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return localText{there: true}, errors.New("it was replaced while it was read")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocBytes+1))
	if err != nil {
		return localText{there: true}, unwrapPath(err)
	}
	if len(data) > maxDocBytes {
		return localText{there: true}, fmt.Errorf("it has %s bytes, more than any document: at most %s characters are kept",
			text.Thousands(int(info.Size())), text.Thousands(tree.MaxChars))
	}
	content, err := tree.Normalize(string(data))
	if err != nil {
		return localText{there: true}, err
	}
	return localText{true, content, tree.Sum(content)}, nil
}

// write replaces a file whole.
func (d *docsDir) write(name string, content []byte) error {
	fresh := path.Join(path.Dir(name), freshName)
	_ = d.root.Remove(fresh) // of one that was killed
	f, err := d.root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unwrapPath(err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.root.Rename(fresh, name)
	}
	if err != nil {
		return errors.Join(unwrapPath(err), d.root.Remove(fresh))
	}
	return nil
}

// docsIndex says which document each file of an export is.
type docsIndex struct {
	Schema      int    `json:"schema"`
	WorkspaceID string `json:"workspace_id"`
	// Folders are the folders of the tree by their path; "." is the root.
	Folders map[string]indexRow `json:"folders"`

	there bool
}

// indexRow is a folder, and the document that was read from it or saved to it
// last; without one it has no DocID.
type indexRow struct {
	FolderID tree.FolderID `json:"folder_id"`
	DocID    string        `json:"doc_id,omitempty"`
	Version  int64         `json:"version,omitempty"`
	SHA256   string        `json:"sha256,omitempty"`
}

const indexSchema = 1

// readIndex reads the index; an empty one where there is none.
func (d *docsDir) readIndex() (docsIndex, error) {
	x := docsIndex{Schema: indexSchema, Folders: map[string]indexRow{}}
	info, err := d.root.Lstat(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	var data []byte
	if err == nil {
		data, err = d.root.ReadFile(indexName)
	}
	if err == nil {
		err = json.Unmarshal(data, &x)
	}
	if err == nil && (x.Schema != indexSchema || x.WorkspaceID == "") {
		err = fmt.Errorf("its schema is %d, and this program knows %d", x.Schema, indexSchema)
	}
	if err != nil {
		return x, usagef("%s: %w; remove it to begin anew", filepath.Join(d.name, indexName), unwrapPath(err))
	}
	if x.Folders == nil {
		x.Folders = map[string]indexRow{}
	}
	x.there = true
	return x, nil
}

// writeIndex replaces the index.
func (d *docsDir) writeIndex(x docsIndex) error {
	data, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	if err := d.write(indexName, append(data, '\n')); err != nil {
		return unable(fmt.Errorf("%s: %w", filepath.Join(d.name, indexName), err))
	}
	return nil
}
