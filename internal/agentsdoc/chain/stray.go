package chain

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostStrays = 1024 // lookups of one source
	strayBytes = 100
)

// strays reports files that are there and that an "@" in prose names without importing them, such as "(@a.md)", "@a.md:" and
// "@my notes.md". The longest name counts.
func (im *importer) strays(path, real string, prose []byte, lineAt func(int) int, depth int) {
	isWord := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	for at, c := range prose {
		if c != '@' {
			continue
		}
		if before, _ := utf8.DecodeLastRune(prose[:at]); at > 0 && (isWord(before) || strings.ContainsRune("`./@\\_-+#&%~$", before)) {
			continue
		}
		name := string(prose[at+1 : min(len(prose), at+strayBytes)])
		if n := strings.IndexAny(name, "\n\x00"); n >= 0 {
			name = name[:n]
		}
		for ; name != "" && im.strayed < mostStrays; name = name[:max(0, strings.LastIndexFunc(name, func(c rune) bool { return !isWord(c) }))] {
			if im.strayed++; !im.isStray(real, name) {
				continue
			}
			why := refuseStray
			if depth >= im.style.depth() {
				why = refusal(fmt.Sprintf(string(refuseDepth), im.style.depth()))
			}
			im.refuse(Importer{path, lineAt(at)}, real, name, why)
			break
		}
	}
}

// isStray reports whether the file at real names a file that could be imported and is not.
func (im *importer) isStray(real, name string) bool {
	path := im.place(real, name)
	if !slices.ContainsFunc(im.bases, func(b base) bool { return Within(b.real, path) }) || im.style == ImportListed && !hasTextName(path) {
		return false
	}
	found, err := im.view.RealPath(path)
	taken := im.once[found] || slices.Contains(im.open, found) || slices.ContainsFunc(im.imports, func(in Import) bool { return in.Path == found })
	if err != nil || taken || !slices.ContainsFunc(im.bases, func(b base) bool { return Within(b.real, found) }) {
		return false
	}
	dir, err := im.view.OpenDir(filepath.Dir(found))
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat(filepath.Base(found))
	return err == nil && info.Mode.IsRegular()
}
