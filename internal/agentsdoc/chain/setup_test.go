package chain

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

var build = agentsdoctest.Build

type files = agentsdoctest.Tree

// views are the implementations that keep the same promises.
func views() map[string]FS { return map[string]FS{"os": OS{}, "portable": fsview.Portable{}} }

// outline prints what a chain says, one line a row, with paths below base.
func outline(c Chain, base string) string {
	var out strings.Builder
	short := func(path string) string {
		return strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, base)), "/")
	}
	if c.Root != "" {
		fmt.Fprintf(&out, "root %q found=%t\n", short(c.Root), c.RootFound)
	}
	for _, s := range c.Sources {
		fmt.Fprintf(&out, "%s %s %s", s.State, s.Scope, s.Display)
		if s.Reason != "" {
			fmt.Fprintf(&out, " (%s)", s.Reason)
		}
		if s.DuplicateOf != "" {
			fmt.Fprintf(&out, " = %s", short(s.DuplicateOf))
		}
		if s.Text != "" {
			fmt.Fprintf(&out, ": %s", s.Text)
		}
		out.WriteByte('\n')
	}
	for _, d := range c.Diagnostics {
		fmt.Fprintf(&out, "! %s %s %s\n", d.Severity, d.Code, short(d.Path))
	}
	return out.String()
}

// lines joins lines as outline prints them.
func lines(list ...string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

// normalText is the normal form of bytes.
func normalText(raw string) string {
	text, _ := form{normal: true}.text(raw)
	return text
}

// addFile makes a file and its directories.
func addFile(tb testing.TB, path, text string) {
	tb.Helper()
	agentsdoctest.Put(tb, "", path, text)
}

// The documented limits of the presets.
const (
	defaultFileBytes  = 32 << 10
	defaultTotalBytes = 32 << 10
	defaultFiles      = 32
	codexBytes        = 32 << 10
	codeliaBytes      = 256 << 10
)
