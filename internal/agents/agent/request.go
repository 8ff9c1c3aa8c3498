package agent

import (
	"regexp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
)

// Reading is how far the file was read that an agent keeps of a conversation; the zero value is its beginning.
type Reading struct {
	Path    string
	Offset  int64
	History manifest.History  // of what was read
	Calls   map[string]string // the tools of calls without a result, by their ids
	Lost    string            // why there was no request the last time
}

// NotSeen is the fact that parts of a request are not in its record.
func NotSeen(parts string) []manifest.HostFact {
	return []manifest.HostFact{{Name: "not_seen", Value: parts}}
}

// WithFiles cuts a part of a request at the files of instructions in it. A mark matches one with its name and its text.
func WithFiles(p compiler.RequestPart, mark *regexp.Regexp) (parts []compiler.RequestPart) {
	for m := mark.FindStringSubmatchIndex(p.Text); m != nil; m = mark.FindStringSubmatchIndex(p.Text) {
		before, file := p, p
		before.Text, file.Text, file.Kind, file.ID = p.Text[:m[4]], p.Text[m[4]:m[5]], "instructions", p.Text[m[2]:m[3]]
		parts, p.Text = append(parts, before, file), p.Text[m[5]:]
	}
	if p.Text != "" {
		parts = append(parts, p)
	}
	return parts
}
