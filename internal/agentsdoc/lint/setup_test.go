package lint

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

var build = agentsdoctest.Build

type files = agentsdoctest.Tree

func write(tb testing.TB, path, text string) {
	tb.Helper()
	agentsdoctest.Put(tb, "", path, text)
}

// writeIndex writes git's index of some files, as it was in its beginning.
func writeIndex(tb testing.TB, path string, names ...string) {
	tb.Helper()
	out := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(names)))
	for _, name := range slices.Sorted(slices.Values(names)) {
		out = append(out, make([]byte, 40+20)...)
		out = binary.BigEndian.AppendUint16(out, uint16(len(name)))
		out = append(out, name...)
		out = append(out, make([]byte, 8-(40+20+2+len(name))%8)...)
	}
	sum := sha1.Sum(out)
	out = append(out, sum[:]...)
	write(tb, path, string(out))
}

// mustRun runs lint on a tree.
func mustRun(tb testing.TB, dir string, o Options) Report {
	tb.Helper()
	r, err := Run(context.Background(), dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// outline is what a report says, a line each, with paths below base.
func outline(r *Report, base string) []string {
	lines := []string{fmt.Sprintf("%d files, %d directories, %d over", r.Files, r.Directories, r.ChainsOverBudget)}
	for _, d := range r.Problems {
		path, _ := strings.CutPrefix(filepath.ToSlash(strings.TrimPrefix(d.Path, base)), "/")
		lines = append(lines, fmt.Sprintf("%s %s %s", d.Severity, d.Code, path))
	}
	return lines
}

// noGlobals are the default options without the user's own files.
func noGlobals(change func(o *chain.Options)) Options {
	o := chain.Default()
	if change != nil {
		change(&o)
	}
	return Options{Chain: o}
}
