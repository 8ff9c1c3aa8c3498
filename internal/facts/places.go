package facts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/guard"
	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

const (
	maxEntries = 20_000 // of directories that are looked at for one call
	wildcards  = string(shell.Star) + string(shell.Any)
)

// places is the file system as a call sees it.
type places struct {
	*guard.View
	dir, home string // absolute; empty if unknown
	left      int
}

// full is a name in a directory as an absolute path, with links and .. as they are; not ok if it cannot be known.
func (p *places) full(dir, name string) (string, bool) {
	name, _, _ = strings.Cut(name, "\x00")
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "file://"), "file:"); ok || strings.HasPrefix(name, "file://") {
		name = rest
	}
	name = shell.Join(dir, name)
	switch {
	case len(name) > 4096 || strings.ContainsRune(name, shell.Unknown):
		return "", false
	case name == shell.Top || strings.HasPrefix(name, shell.Top+"/"):
		return p.Top(p.dir) + name[len(shell.Top):], p.dir != ""
	case name == "~" || strings.HasPrefix(name, "~/"):
		return p.home + name[1:], p.home != ""
	case filepath.IsAbs(name):
		return name, true
	}
	return p.dir + "/" + name, p.dir != "" && !strings.HasPrefix(name, "~")
}

func (p *places) isDir(name string) bool {
	info := p.Lstat(p.Resolve(name))
	return info != nil && info.IsDir()
}

// expand returns the paths that a shell puts in the place of a path with wildcards: the path itself if there are none,
// and the directory for all below it. It is not ok if there is too much to look at.
func (p *places) expand(name string) (list []string, ok bool) {
	list = []string{""}
	for elem := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		var next []string
		for _, dir := range list {
			switch {
			case !strings.ContainsAny(elem, wildcards):
				if joined := dir + "/" + elem; len(list) == 1 || p.Lstat(joined) != nil {
					next = append(next, joined)
				}
			case len(elem) > 3 && strings.Trim(elem, string(shell.Star)) == "": // **
				return list, true
			default:
				next = append(next, p.matches(dir, elem)...)
			}
		}
		if list = next; p.left <= 0 {
			return nil, false
		}
	}
	if len(list) == 0 {
		list = []string{shell.Plain(name)}
	}
	return list, true
}

func (p *places) matches(dir, glob string) (list []string) {
	f, err := os.Open(dir + "/")
	if err != nil || p.left <= 0 {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	names, _ := f.Readdirnames(p.left)
	p.left -= len(names) + 1
	slices.Sort(names)
	for _, name := range names {
		if protect.Match(glob, name) {
			list = append(list, dir+"/"+name)
		}
	}
	return list
}
