package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// hostileText tries to colour, to move the cursor, and to end a colour of ours.
const hostileText = "x\x1b[31mred\u009b32m\x1b[0m"

// hostileTurn has a row of each kind, with hostile text wherever a plugin or a file may put some.
func hostileTurn() *runtime.Compiled {
	const h = hostileText
	m := &manifest.Manifest{}
	m.ManifestID, m.WorkspaceID, m.ThreadID, m.TurnID = h, h, h, h
	m.Sections = []manifest.Section{
		{SectionID: "whole", Owner: "host", Fingerprint: "f"},
		{SectionID: h, Owner: h, Chars: 9, Truncation: &phases.Truncation{Limit: h, Kept: 1, Original: 2}, Fingerprint: h},
	}
	m.Omitted = []phases.Omitted{{ID: h, Owner: h, Reason: h}}
	m.Files = []manifest.File{{Path: h, Status: h}}
	for _, s := range []phases.RunState{phases.StateSucceeded, phases.StateDenied, phases.StateFiltered, phases.StateCancelled, phases.StateQueued, h} {
		m.Runs = append(m.Runs, phases.Run{Subscription: h, State: s, PluginCode: h})
	}
	m.Plugins = []phases.PluginRow{{Plugin: h, State: phases.PluginBackoff, Message: h}}
	m.Cache.Break = manifest.Break{Cause: manifest.CauseText, BrokeAt: h, Owner: h}
	return &runtime.Compiled{
		Prompt: &compiler.Prompt{FullText: h}, Manifest: m,
		Diagnostics: []phases.Diagnostic{{Severity: phases.SeverityError, Code: h, Message: h}, {Severity: phases.SeverityWarning, Code: "w", Message: h}},
	}
}

// TestColours: a terminal gets the plain text with our sequences in it and nothing else, and meaning has its colour.
func TestColours(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		print func(*app)
		want  []string
	}{
		{"turn", func(a *app) {
			if err := a.printCompiled(hostileTurn(), nil, ""); err != nil {
				t.Error(err)
			}
		}, []string{
			"\uFFFD[31mred", // the prompt's own sequences are text
			"\x1b[1m── manifest ", "\n\n\x1b[1msections (2)\x1b[0m\n", "  \x1b[33mxred",
			"\x1b[32msucceeded\x1b[0m ", "\x1b[31mdenied\x1b[0m    ", "\x1b[2mfiltered\x1b[0m ", "\x1b[33mcancelled\x1b[0m ", "  queued ",
			"\x1b[33mbackoff\x1b[0m", "\x1b[31merror\x1b[0m  ", "\x1b[33mwarning\x1b[0m  ", "broke at  \x1b[33mxred",
		}},
		{"table", func(a *app) {
			tb := newTable("", "state|>n|note")
			tb.add(styled{good, "ok  "}, styled{bad, "7"}, styled{caution, ""})
			a.printTable(tb)
			a.printf("behind it %s\n", hostileText)
		}, []string{
			"  state  n  note\n  \x1b[32mok\x1b[0m     \x1b[31m7\x1b[0m  -\n", // blanks have no colour, nor has the dash of an empty cell
			"behind it x\uFFFD[31mred",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			plain, coloured := &app{terminal: true, globalFlags: globalFlags{Color: "never"}}, &app{globalFlags: globalFlags{Color: "always"}}
			tt.print(plain)
			tt.print(coloured)
			want, got := plain.result(), coloured.result()
			if strings.ContainsAny(want, "\x1b\u009b") {
				t.Errorf("an escape sequence without colours: %q", want)
			}
			// One that came through is removed here, and what is left is not the plain text.
			if diff := cmp.Diff(want, regexp.MustCompile(`\x1b\[(0|1|2|3[1236])m`).ReplaceAllString(got, "")); diff != "" {
				t.Errorf("without our sequences (-plain +coloured):\n%s", diff)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%q", want, got)
				}
			}
			for line := range strings.Lines(got) {
				if begun := strings.Count(line, "\x1b["); begun != 2*strings.Count(line, "\x1b[0m") {
					t.Errorf("a colour goes beyond its line: %q", line)
				}
			}
		})
	}
}
