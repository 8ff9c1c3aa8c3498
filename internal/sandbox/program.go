package sandbox

import (
	"debug/elf"
	"io"
	"os"
	"strings"
)

// Program is what is going to be started, as far as its confinement must know.
type Program struct {
	// Files are what is executed: the program, or a script and its
	// interpreter. They stay the caller's.
	Files []*os.File
	// Script says that an interpreter runs it.
	Script bool
	// Folder is the program's private folder, which it may use freely.
	Folder string
}

// kinds says which rows of Needs a program gets, and the paths of its loaders.
func (p Program) kinds(n Net) (kinds map[Kind]bool, loaders []string) {
	kinds = map[Kind]bool{KindEvery: true, KindNetwork: !n.none(), KindScript: p.Script, KindDynamic: p.Script}
	for _, f := range p.Files {
		if path := loader(f); path != "" {
			kinds[KindDynamic] = true
			loaders = append(loaders, path)
		}
	}
	return kinds, loaders
}

// loader returns the path of what links a program at its start, or "".
func loader(f io.ReaderAt) string {
	image, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	for _, segment := range image.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		path, err := io.ReadAll(segment.Open())
		if err != nil {
			return ""
		}
		return strings.TrimRight(string(path), "\x00")
	}
	return ""
}
