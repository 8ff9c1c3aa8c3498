package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestCompareTools: the first tool that the model sees differently breaks the prefix.
func TestCompareTools(t *testing.T) {
	t.Parallel()

	dog := outlineTool{Name: "fetch", Owner: "dog", Hash: 1}
	other, hidden, elks := dog, dog, dog
	other.Hash, hidden.HiddenDomain, elks.Owner = 2, "tricks", "elk"
	request := outlineTool{Name: phases.RequestTools, Owner: phases.OwnerBuiltin, Hash: 3}
	for _, tt := range []struct {
		name          string
		before, after []outlineTool
		field, owner  string
	}{
		{"another definition", []outlineTool{dog}, []outlineTool{other}, "definition", "dog"},
		{"comes", nil, []outlineTool{dog}, "added", "dog"},
		{"goes", []outlineTool{dog}, nil, "removed", "dog"},
		{"comes hidden", nil, []outlineTool{hidden}, "", ""},
		{"is hidden, and so request_tools comes", []outlineTool{dog}, []outlineTool{hidden, request}, "hidden_domain", "dog"},
		{"is asked for, and so request_tools goes", []outlineTool{request, hidden}, []outlineTool{dog}, "hidden_domain", "dog"},
		{"is another plugin's, which the model does not see", []outlineTool{dog}, []outlineTool{elks}, "owner", "elk"},
	} {
		want := Break{Cause: causeTools, Tool: "fetch", Field: tt.field, Owner: tt.owner}
		if tt.field == "" {
			want = Break{}
		}
		if diff := cmp.Diff(Compare(&Outline{Tools: tt.before}, &Outline{Tools: tt.after}, nil, nil), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
		if want.Cause != "" {
			want.Cause = causeHost
		}
		if diff := cmp.Diff(Compare(&Outline{HostTools: tt.before}, &Outline{HostTools: tt.after}, nil, nil), want); diff != "" {
			t.Errorf("%s, of the host (-got +want):\n%s", tt.name, diff)
		}
	}
	if got := Compare(&Outline{Key: 1, Tools: []outlineTool{dog}}, &Outline{Key: 2, Tools: []outlineTool{other}}, nil, nil); got.Cause != causeKey {
		t.Errorf("hashes of two keys were compared: %+v", got)
	}
}

// TestCompareBecause: a change of a section is explained by what changed with it.
func TestCompareBecause(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		owner string
		goes  bool
		after Outline
		want  Cause
	}{
		"nothing else":            {owner: "ant"},
		"a version":               {owner: "ant", after: Outline{Plugins: []outlinePlugin{{Name: "ant", Version: "2"}}}, want: causeVersion},
		"a build":                 {owner: phases.OwnerBuiltin, after: Outline{Build: "b2"}, want: causeBuild},
		"a configuration":         {owner: "ant", after: Outline{Config: 2}, want: causeConfig},
		"a profile":               {owner: "ant", goes: true, after: Outline{Profile: phases.ProfileNone}, want: causeProfile},
		"a profile, for its text": {owner: "ant", after: Outline{Profile: phases.ProfileNone}},
	} {
		section := OutlineSection{SectionID: "notes", Owner: tt.owner, Chars: 9, Tokens: -1, Hash: 1}
		before := Outline{Build: "b1", Config: 1, Plugins: []outlinePlugin{{Name: "ant", Version: "1"}}, Sections: []OutlineSection{section}}
		if !tt.goes {
			section.Hash = 2
			tt.after.Sections = []OutlineSection{section}
		}
		if got := Compare(&before, &tt.after, nil, nil); got.BrokeAt != "notes" || got.Because != tt.want {
			t.Errorf("%s: %+v, want %q", name, got, tt.want)
		}
	}
}
