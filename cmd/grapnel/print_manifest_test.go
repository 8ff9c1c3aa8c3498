package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestPrintCache: what was predicted stands beside what came of it, and a prompt
// without a past says nothing.
func TestPrintCache(t *testing.T) {
	t.Parallel()

	reported := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	plan := manifest.CachePlan{Breakpoints: []manifest.Breakpoint{{After: manifest.AfterTools}, {After: manifest.AfterStable, SectionID: "safety"}}}
	tests := []struct {
		name  string
		cache manifest.Cache
		usage *manifest.Usage
		want  string
	}{
		{"the first of a thread", manifest.Cache{Plan: plan}, nil, ""},
		{
			"served",
			manifest.Cache{Plan: plan, Predicted: new(1024)},
			&manifest.Usage{Rounds: 1, ReportedAt: reported, Usage: phases.Usage{InputTokens: 2000, OutputTokens: 1, CacheReadTokens: 1, CacheWriteTokens: 300}},
			"\nprompt cache\n" +
				"  predicted    1,024 tokens\n" +
				"  actual       1 token of 2,000 in, 300 written to the cache, 1 out\n" +
				"  reported     2026-01-02 03:04:05Z, for this prompt alone\n" +
				"  breakpoints  after tools, after stable (safety)\n",
		},
		{
			"broken",
			manifest.Cache{Predicted: new(0), Break: manifest.Break{Cause: manifest.CauseText, BrokeAt: "agents_md", Field: "text", Owner: "agentsdoc", Because: manifest.CauseVersion, TokensLost: 1500}},
			nil,
			"\nprompt cache\n" +
				"  predicted  0 tokens (section_text)\n" +
				"  broke at   agents_md (agentsdoc): another text, with another version of agentsdoc, 1,500 tokens lost\n",
		},
		{
			"a reason of a later version",
			manifest.Cache{Predicted: new(0), Break: manifest.Break{Cause: "moon"}},
			nil,
			"\nprompt cache\n  predicted  0 tokens (moon)\n  broke at   moon: moon\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			a := &app{}
			a.printCache(&manifest.Manifest{Cache: tt.cache}, tt.usage)
			if diff := cmp.Diff(a.out.String(), tt.want); diff != "" {
				t.Errorf("cache (-got +want):\n%s", diff)
			}
		})
	}
}

// TestPrintSections: tokens have a column where they were counted, and only
// there.
func TestPrintSections(t *testing.T) {
	t.Parallel()

	plain := manifest.Section{SectionID: "a", Owner: "host", Stability: phases.StabilityStable, Placement: phases.PlacementSystem, Chars: 1200, Fingerprint: "xxh64:0"}
	counted := plain
	counted.SectionID, counted.Tokens, counted.Tokenizer = "b", new(1300), "cl100k_base"
	tests := []struct {
		name     string
		sections []manifest.Section
		tools    int
		want     string
	}{
		{
			"not counted",
			[]manifest.Section{plain},
			0,
			"\nsections (1)\n  section  owner  stability  placement  chars  cut  fingerprint\n  a        host   stable     system     1,200  -    xxh64:0\n",
		},
		{
			"counted in part",
			[]manifest.Section{plain, counted},
			866,
			"\nsections (2)\n  section  owner  stability  placement  chars  tokens  cut  fingerprint\n" +
				"  a        host   stable     system     1,200       -  -    xxh64:0\n" +
				"  b        host   stable     system     1,200   1,300  -    xxh64:0\n" +
				"  2,166 tokens together: 1,300 of text, 866 of tools, counted as cl100k_base\n",
		},
		{"none", nil, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			a := &app{}
			a.printSections(tt.sections, false, tt.tools)
			if diff := cmp.Diff(a.out.String(), tt.want); diff != "" {
				t.Errorf("sections (-got +want):\n%s", diff)
			}
		})
	}
}

// TestPrintRequests: each change has a row, and so has a request without any.
func TestPrintRequests(t *testing.T) {
	t.Parallel()

	a := &app{}
	a.printRequests(nil)
	a.printRequests([]manifest.Request{
		{ManifestID: "01A", Changes: []manifest.RequestChange{{Kind: manifest.RequestPlacement, ID: "rules", Manifest: "system_message", Sent: "system"}}, Omitted: 1200},
		{ManifestID: "01B"},
	})
	want := "\nrequests (3)\n" +
		"  prompt  change      what   in the record   sent\n" +
		"  01A     placement   rules  system_message  system\n" +
		"  01A     1,200 more  -      -               -\n" +
		"  01B     none        -      -               -\n"
	if diff := cmp.Diff(a.out.String(), want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}
