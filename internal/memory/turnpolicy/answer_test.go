package turnpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, data string
		want       []Wish
		err        string
	}{
		{"nothing", `{"wishes":[]}`, []Wish{}, ""},
		{"no list", `{}`, nil, ""},
		{
			"in order", `{"wishes":[{"intent":"remember","confidence":0.7},{"intent":"forget","confidence":1,"target":"my job","language":"en"}]}`,
			[]Wish{{Intent: IntentForget, Confidence: 1, Target: "my job", Language: "en"}, {Intent: IntentRemember, Confidence: 0.7}},
			"",
		},
		{"no intent", `{"wishes":[{"intent":"erase","confidence":1}]}`, nil, `wish 0: intent: "erase" is not one of`},
		{"twice", `{"wishes":[{"intent":"no_use","confidence":1},{"intent":"no_use","confidence":0}]}`, nil, "wish 1: no_use is there twice"},
		{"target of nothing", `{"wishes":[{"intent":"remember","confidence":1,"target":"x"}]}`, nil, "remember has no target"},
		{"too sure", `{"wishes":[{"intent":"no_use","confidence":90}]}`, nil, "confidence: 90"},
		{"with a rule", `{"wishes":[{"intent":"no_use","confidence":1,"rule":"en.x"}]}`, nil, "only rules have one"},
		{"with rules", `{"rules":["en.x"]}`, nil, "only rules have some"},
		{"more keys", `{"intent":"no_use"}`, nil, "intent"},
		{"nonsense", `I think the user wants nothing.`, nil, "invalid character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAnswer([]byte(tt.data))
			wantError(t, err, tt.err)
			if diff := cmp.Diff(got.Wishes, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestModelAnswer: a model's answer decides like one of the rules, and says so.
func TestModelAnswer(t *testing.T) {
	t.Parallel()
	a, err := ParseAnswer([]byte(`{"wishes":[{"intent":"no_save","confidence":0.8,"language":"pt"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := Decide(Input{}, Options{Classify: func(string) Answer { return a }})
	want := because(NoSave.Policy(), SourceModel, "model.no_save", 0.8)
	want.Language = "pt"
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// FuzzParseAnswer: whatever a model answers, the policy is a valid one.
func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"wishes":[{"intent":"forget","confidence":0.8,"target":"x"}]}`))
	f.Add([]byte(`{"wishes":[{"intent":"remember","confidence":1,"language":"en"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseAnswer(data)
		if err != nil {
			return
		}
		p := Decide(Input{}, Options{Classify: func(string) Answer { return a }})
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
