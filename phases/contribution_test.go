package phases_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestContributionsSurviveJSON(t *testing.T) {
	t.Parallel()
	want := contributions()
	data := encode(t, want)
	var got phases.Contributions
	if err := json.Unmarshal([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	// What is the host's side of a diagnostic is not part of its JSON.
	for _, list := range []phases.Contributions{want, got} {
		for _, c := range list {
			for i := range c.Head().Diagnostics {
				d := &c.Head().Diagnostics[i]
				d.SafeForUser, d.Visibility, d.Detail = false, "", ""
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	for i, c := range contributions() {
		one := encode(t, phases.Contributions{c})
		if !strings.HasPrefix(one, `[{"kind":"`+string(phases.KindOf(c))+`"`) {
			t.Errorf("contribution %d begins with %.40s", i, one)
		}
	}
}

func TestContributionsJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     phases.Contributions
		err      string
	}{
		{"none", `[]`, phases.Contributions{}, ""},
		{"noop", `[{"kind":"noop"}]`, phases.Contributions{&phases.Noop{}}, ""},
		{"kind last", `[{"verdict":"deny","kind":"decision"}]`, phases.Contributions{&phases.Decision{Verdict: "deny"}}, ""},
		{"no list", `{"kind":"noop"}`, nil, "want a list of objects"},
		{"no object", `["noop"]`, nil, "want a list of objects"},
		{"null", `[null]`, nil, "contribution 0: no kind; it is one of policy, prompt_context"},
		{"no kind", `[{"kind":"noop"},{"verdict":"deny"}]`, nil, "contribution 1: no kind"},
		{"kind of another type", `[{"kind":1}]`, nil, "contribution 0: kind:"},
		{"unknown kind", `[{"kind":"decisoin"}]`, nil, `contribution 0: unknown kind "decisoin" (did you mean "decision"?)`},
		{"unknown field", `[{"kind":"decision","verdikt":"deny"}]`, nil, `contribution 0: decision: json: unknown field "verdikt"`},
		{"field of another kind", `[{"kind":"noop","verdict":"deny"}]`, nil, "unknown field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got phases.Contributions
			err := json.Unmarshal([]byte(tt.in), &got)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || got != nil {
					t.Errorf("got %v, error %v, want %s", got, err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(got, tt.want); diff != "" || err != nil {
				t.Errorf("error %v (-got +want)\n%s", err, diff)
			}
		})
	}
	for _, c := range []phases.Contribution{nil, (*phases.Policy)(nil), &phases.Policy{Value: json.RawMessage(`{`)}} {
		if data, err := json.Marshal(phases.Contributions{&phases.Noop{}, c}); err == nil || !strings.Contains(err.Error(), "contribution 1") {
			t.Errorf("%#v becomes %s, error %v", c, data, err)
		}
	}
}

func FuzzContributions(f *testing.F) {
	f.Add([]byte(`[{"kind":"noop"},{"kind":"policy","domain":"d","key":"k","value":{"a":"<b>"}}]`))
	f.Add([]byte(`[{"kind":"prompt_section","section_id":"s","content":"x","frame":{"open":"<A>"},"cut":{"original":2,"kept":1}}]`))
	f.Add([]byte(`[{"kind":"tool_bundle","bundle_id":"b","tools":[{"name":"t","input_schema":{}}]}]`))
	f.Add([]byte(`[{"kind":"background_job","job_kind":"j","not_before":"2026-01-02T03:04:05Z"}]`))
	r := phases.Custom("x.fuzz.any", "", 0, phases.Kinds()...)
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, again phases.Contributions
		if json.Unmarshal(data, &first) != nil {
			return
		}
		for _, c := range first {
			_ = phases.ValidateContribution(c, r) // whatever it says, it must return
		}
		out := encode(t, first)
		if err := json.Unmarshal([]byte(out), &again); err != nil {
			t.Fatalf("%s cannot be read back: %v", out, err)
		}
		if encode(t, again) != out {
			t.Fatalf("%s is read back as %s", out, encode(t, again))
		}
	})
}

func FuzzDecodeInput(f *testing.F) {
	table := phases.Standard()
	names := table.Names()
	for i, in := range inputs()[:len(names)] {
		f.Add(i, []byte(encode(f, in)))
	}
	f.Fuzz(func(t *testing.T, n int, data []byte) {
		p := phases.Phase(names[((n%len(names))+len(names))%len(names)])
		in, err := phases.DecodeInput(table, p, data)
		if err != nil {
			return
		}
		if err := phases.ValidateInput(in); err != nil {
			t.Fatalf("%s is decoded, and then: %v", data, err)
		}
		out := encode(t, in)
		again, err := phases.DecodeInput(table, p, []byte(out))
		if err != nil || encode(t, again) != out {
			t.Fatalf("%s is read back as %v (%v)", out, again, err)
		}
		blind, names := phases.Withhold(in, func(string) bool { return false })
		for name := range members(t, blind) {
			if name != "tool" && !slices.Contains(names, name) {
				t.Fatalf("%s: %s is there and not named in %v", encode(t, blind), name, names)
			}
		}
	})
}
