package compiler

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestFiles: the rows say how much of each file is in the prompt, whatever the
// loader said.
func TestFiles(t *testing.T) {
	t.Parallel()

	full := HostTexts{SoulCore: "\n\nCurious.\n", IdentityCore: "a <!-- grapnel:dynamic -->", UserPersona: strings.Repeat("x ", 50)}
	tests := []struct {
		name string
		in   Input
		want []int
	}{
		{"trimmed and escaped", Input{Host: full}, []int{8, 27, 99}},
		{"nothing there", Input{}, []int{0, 0, 0}},
		{"blank", Input{Host: HostTexts{SoulCore: " \n"}}, []int{0, 0, 0}},
		{"another profile", Input{Host: full, Profile: phases.ProfileMinimal}, []int{0, 0, 0}},
		{"cut, without the marker", Input{Host: full, Limits: Limits{FileChars: 60}}, []int{8, 27, 22}},
		{"no room for the last", Input{Host: full, Limits: Limits{FilesChars: 40}}, []int{8, 27, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			given := []manifest.File{
				{Path: "SOUL.md", Status: "loaded", Chars: 7},
				{Path: "IDENTITY.md", Status: "loaded", Chars: 7},
				{Path: "USER.md", Status: "odd", Chars: 7},
				{Path: "OTHER.md", Status: "loaded", Chars: 7},
			}
			in := tt.in
			in.Files = slices.Clone(given)
			out, err := Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(given)
			for i := range want {
				want[i].Chars = append(tt.want, 0)[i]
			}
			if diff := cmp.Diff(out.Files, want); diff != "" {
				t.Errorf("files (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(out.Manifest().Files, want); diff != "" {
				t.Errorf("files of the manifest (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(in.Files, given); diff != "" {
				t.Errorf("the input was changed (-got +want):\n%s", diff)
			}
			for _, f := range out.Files {
				id := map[string]string{"SOUL.md": "soul_core", "IDENTITY.md": "identity_core", "USER.md": "user_persona"}[f.Path]
				at := slices.IndexFunc(out.Sections, func(s manifest.Section) bool { return s.SectionID == id })
				if (at >= 0) != (f.Chars > 0) {
					t.Errorf("%+v: section %d", f, at)
				} else if at >= 0 && out.Sections[at].Truncation != nil && out.Sections[at].Truncation.Kept != f.Chars {
					t.Errorf("%+v does not match its section %+v", f, out.Sections[at])
				}
			}
		})
	}
}

// TestEmptiedFiles: a file without a byte has a row among the omitted sections, as one with blanks has; a missing one has none.
func TestEmptiedFiles(t *testing.T) {
	t.Parallel()

	out, err := Compile(Input{
		Host:  HostTexts{SoulCore: "Curious.", UserPersona: " \n"},
		Files: []manifest.File{{Path: "SOUL.md", Status: "loaded"}, {Path: "IDENTITY.md", Status: "loaded"}, {Path: "USER.md", Status: "loaded"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []phases.Omitted{
		{ID: "identity_core", Owner: phases.OwnerBuiltin, Reason: ReasonBlank}, {ID: "user_persona", Owner: phases.OwnerBuiltin, Reason: ReasonBlank, Chars: 2},
	}
	if diff := cmp.Diff(out.Omitted, want); diff != "" {
		t.Errorf("omitted (-got +want):\n%s", diff)
	}
	out, err = Compile(Input{Files: []manifest.File{{Path: "IDENTITY.md", Status: "missing"}}})
	if err != nil || len(out.Omitted) != 0 {
		t.Errorf("omitted %+v, %v", out.Omitted, err)
	}
}
