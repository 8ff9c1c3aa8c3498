package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

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
