package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/grapnelhq/grapnel/home"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
)

// checkHome refuses a folder that is not there. To the engine that is a home
// whose files are missing; to somebody who has just typed its name it is most
// likely a mistake.
func checkHome(dir string) error {
	if dir == "" {
		return nil
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("--home %s: there is no such folder; prepare one with: grapnel init --home %s", dir, dir)
	case err != nil:
		return usagef("--home %s: %w", dir, unwrapPath(err))
	case !info.IsDir():
		return usagef("--home %s: is not a folder", dir)
	}
	return nil
}

// printFiles prints what became of the files of the runtime home.
func (a *app) printFiles(files []manifest.File) {
	t := newTable("runtime home", "file", "status", ">chars")
	for _, f := range files {
		t.add(f.Path, f.Status, text.Thousands(f.Chars))
	}
	a.printTable(t)
}

// fileOf is the row of the runtime home's file that a section is the text of;
// nil if there is none.
func (r *record) fileOf(section string) *manifest.File {
	i := slices.IndexFunc(r.Files, func(f manifest.File) bool { return sectionOf(f.Path) == section && section != "" })
	if i < 0 {
		return nil
	}
	return &r.Files[i]
}

// sectionOf is the id of the section that a file of the runtime home goes into.
func sectionOf(file string) string {
	switch file {
	case home.SoulFile:
		return "soul_core"
	case home.IdentityFile:
		return "identity_core"
	case home.UserFile:
		return "user_persona"
	}
	return ""
}

// whyFile says why a file of the runtime home gave no section.
func whyFile(f *manifest.File) string {
	switch f.Status {
	case home.StatusMissing:
		return f.Path + " is not in the runtime home"
	case home.StatusLoaded:
		return f.Path + " in the runtime home is empty"
	}
	return fmt.Sprintf("%s in the runtime home was not read (%s)", f.Path, f.Status)
}
