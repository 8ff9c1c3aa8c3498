package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/tree"
)

const (
	docFile   = "AGENTS.md"
	indexName = ".grapnel-tree.json"
	freshName = ".grapnel-new" // a file that is not yet whole. No exported folder begins with a dot
)

// docsDir is the directory of an export. Paths cannot lead out of it, and links are not followed.
type docsDir struct {
	name  string
	root  *os.Root
	dry   bool
	empty string
}

// For a dry run a missing directory is replaced by a temporary empty one.
func openDocsDir(name string, create, dry bool) (*docsDir, error) {
	d := &docsDir{dry: dry}
	var err error
	if d.name, err = filepath.Abs(name); err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	at := d.name
	if _, missing := os.Lstat(at); create && errors.Is(missing, fs.ErrNotExist) {
		if dry {
			if at, err = os.MkdirTemp("", "grapnel-docs-"); err != nil {
				return nil, unable(noTemp(err))
			}
			d.empty = at
		} else {
			d.empty = at
			err = os.MkdirAll(at, 0o700)
		}
	}
	if err == nil {
		d.root, err = os.OpenRoot(at + "/.") // a pipe would be waited for
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

var errNoFolder = errors.New("something that is not a directory is in its place, and is not touched")

// isFolder reports whether a path consists of directories all the way. A link is not one.
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

func pathPrefixes(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, c := range dir + "/" {
			if c == '/' && !yield(dir[:i]) {
				return
			}
		}
	}
}

func (d *docsDir) makeFolder(dir string) error {
	if d.dry {
		return nil
	}
	if there, err := d.isFolder(dir); there || err != nil {
		return err
	}
	if err := d.root.MkdirAll(dir, 0o700); err != nil {
		return unwrapPath(err)
	}
	return nil
}

type localText struct {
	there bool
	text  string
	sum   string
}

// maxDocBytes bounds a text that may be kept: four bytes a character, or two for a line end.
const maxDocBytes = 4*tree.MaxChars + 3

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
		return localText{there: true}, errors.New("it is not a regular file")
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

func (d *docsDir) remove(name string) error {
	if d.dry {
		return nil
	}
	return d.root.Remove(name)
}

func (d *docsDir) write(name string, content []byte) error {
	if d.dry {
		return nil
	}
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

type docsIndex struct {
	Schema      int                 `json:"schema"`
	WorkspaceID string              `json:"workspace_id"`
	Folders     map[string]indexRow `json:"folders"`

	there bool
}

// indexRow is a folder and the document last read from it or saved to it; DocID is empty without one.
type indexRow struct {
	FolderID tree.FolderID `json:"folder_id"`
	DocID    string        `json:"doc_id,omitempty"`
	Version  int64         `json:"version,omitempty"`
	SHA256   string        `json:"sha256,omitempty"`
}

const indexSchema = 1

func (d *docsDir) readIndex() (docsIndex, error) {
	x := docsIndex{Schema: indexSchema, Folders: map[string]indexRow{}}
	info, err := d.root.Lstat(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
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
		return x, usagef("%s: %w; remove it to start over", filepath.Join(d.name, indexName), unwrapPath(err))
	}
	if x.Folders == nil {
		x.Folders = map[string]indexRow{}
	}
	x.there = true
	return x, nil
}

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

const maxFileName = 80 // bounds a directory name in bytes, without its number

// layout maps folders to paths: safe names, unique in their parent regardless of case. Equal trees give equal layouts.
func layout(folders []tree.Folder) map[tree.FolderID]string {
	children := map[tree.FolderID][]tree.Folder{}
	for _, f := range folders {
		children[f.ParentID] = append(children[f.ParentID], f)
	}
	paths := map[tree.FolderID]string{"": "."}
	for queue := []tree.FolderID{""}; len(queue) > 0; queue = queue[1:] {
		list := children[queue[0]]
		slices.SortFunc(list, func(a, b tree.Folder) int { return cmp.Compare(a.ID, b.ID) })
		taken := map[string]bool{}
		for _, f := range list {
			id := tree.FolderID(f.ID)
			if _, seen := paths[id]; seen {
				continue // a tree that goes round is damaged
			}
			name := safeName(f.Name)
			unique := name
			for n := 2; taken[strings.ToLower(unique)]; n++ {
				unique = name + "~" + strconv.Itoa(n)
			}
			taken[strings.ToLower(unique)] = true
			paths[id] = path.Join(paths[queue[0]], unique)
			queue = append(queue, id)
		}
	}
	return paths
}

var devices = lazyregexp.New(`^(?i:CON|PRN|AUX|NUL|(COM|LPT)[0-9])(\.|$)`) // names that Windows takes for devices

// safeName returns a name that is valid on every system, is not hidden, and collides with no file of an export.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\<>:"|?*`, r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxFileName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	name = strings.TrimRight(strings.TrimLeft(name, " "), " .")
	if rest, hidden := strings.CutPrefix(name, "."); hidden {
		name = "_" + rest
	}
	if name == "" || strings.EqualFold(name, docFile) || devices().MatchString(name) {
		name += "_"
	}
	return name
}
