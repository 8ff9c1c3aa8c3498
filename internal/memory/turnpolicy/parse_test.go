package turnpolicy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	whole := NoSave.Policy()
	whole.Source, whole.ReasonCode, whole.Confidence, whole.Language = SourceRules, "en.no_save.dont", 0.88, "en"
	data, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	little := NoUse.Policy()
	little.Recall, little.Source = Allow, SourceMode
	tests := []struct {
		name, data string
		want       Policy
		err        string
	}{
		{"whole", string(data), whole, ""},
		{"what is omitted is disabled", `{"recall":"allow","source":"mode"}`, little, ""},
		{"mistyped", `{"recal":"allow","source":"mode"}`, Policy{}, "recal"},
		{"no source", `{"recall":"allow"}`, Policy{}, "source"},
		{"wrong type", `{"recall":true}`, Policy{}, "bool"},
		{"two values", `{"source":"mode"} {}`, Policy{}, "more than one JSON value"},
		{"nothing", ``, Policy{}, "EOF"},
		{"too long", `{"source":"` + strings.Repeat("x", maxJSON) + `"}`, Policy{}, "more than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse([]byte(tt.data))
			wantError(t, err, tt.err)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestParseOverride(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, data string
		change     func(*Policy)
		err        string
	}{
		{"preset", ` "no_save" `, func(p *Policy) { *p = because(NoSave.Policy(), SourceOverride, reasonOverride, 1) }, ""},
		{"forget preset", `"explicit_forget"`, func(p *Policy) { *p = because(ExplicitForget.Policy(), SourceOverride, reasonOverride, 1) }, ""},
		{"policy", `{"recall":"allow","reason_code":"tenant","confidence":0.2,"source":"mode"}`, func(p *Policy) { p.Recall, p.ReasonCode = Allow, "tenant" }, ""},
		{"nothing in it", `{}`, func(*Policy) {}, ""},
		{"no preset", `"nouse"`, nil, `preset: "nouse" is not one of`},
		{"open text", `"no_use`, nil, "EOF"},
		{"mistyped", `{"forget":"allow"}`, nil, "forget"},
		{"no word", `{"prompt":"loud"}`, nil, "prompt"},
		{"list", `["no_use"]`, nil, "array"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseOverride([]byte(tt.data))
			wantError(t, err, tt.err)
			var want Policy
			if tt.change != nil {
				want = because(NoUse.Policy(), SourceOverride, reasonOverride, 1)
				tt.change(&want)
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// FuzzParse: what is read is valid, and stays what it is when it is written and read
// again.
func FuzzParse(f *testing.F) {
	for _, p := range presets() {
		data, err := json.Marshal(because(p.Policy(), SourceRules, "en.x", 0.5))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`"no_use"`))
	f.Add([]byte(`{"confidence":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (Policy, error){Parse, parseOverride} {
			p, err := parse(data)
			if err != nil {
				continue
			}
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Parse(again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(back, p); diff != "" {
				t.Fatalf("(-got +want):\n%s", diff)
			}
		}
	})
}
