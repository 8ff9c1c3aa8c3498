package compiler

import (
	"slices"

	"github.com/grapnelhq/grapnel/manifest"
)

// listFiles begins the rows of the runtime home: nothing of a file is in the
// prompt until its section is composed.
func (c *compilation) listFiles() {
	c.out.Files = slices.Clone(c.in.Files)
	for i := range c.out.Files {
		c.out.Files[i].Chars = 0
	}
}

// fileKept notes how much of a file's text went into the prompt. A text that the
// host brought has no file, and so no row.
func (c *compilation) fileKept(s *section, chars int) {
	at := slices.IndexFunc(c.out.Files, func(f manifest.File) bool { return f.Path == s.file })
	if at >= 0 {
		c.out.Files[at].Chars = chars
	}
}
