package turnpolicy

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// intentsOf is what a text wishes, surely enough.
func intentsOf(r *Rules, text string) []Intent {
	var all []Intent
	for _, w := range sureWishes(r.Classify(text)) {
		all = append(all, w.Intent)
	}
	return all
}

// TestClassifyWhole: what the parts of the classifier do together.
func TestClassifyWhole(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	prose := strings.Repeat("The parser reads a token and looks at the next one. ", 40)
	huge := strings.Repeat(prose+"\n", 500)
	remember := []Intent{IntentRemember}
	tests := []struct {
		name, text string
		want       []Intent
	}{
		{"empty", "", nil},
		{"typographic", "Don’t save this conversation…", []Intent{IntentNoSave}},
		{"invisible letters", "Re\u200bmember that I use fish.", remember},
		{"full width", "Ｒｅｍｅｍｂｅｒ ｔｈａｔ Ｉ ｕｓｅ ｆｉｓｈ．", remember},
		{"shouting", "REMEMBER THAT I USE FISH!!!", remember},
		{"at the beginning of much", "Remember that I use fish. " + prose, remember},
		{"at the end of much", prose + "Please remember that I use fish.", remember},
		{"in the middle of much", prose + "Remember that I use fish. " + prose, nil},
		{"at the beginning of a megabyte", "Don't save this.\n" + huge, []Intent{IntentNoSave}},
		{"at the end of a megabyte", huge + "Forget my old address.", []Intent{IntentForget}},
		{"in the middle of a megabyte", huge + "Forget my old address.\n" + huge, nil},
		{"code to the end of a megabyte", "```\n" + huge + "Forget my old address.", nil},
		{"after the code of a megabyte", "```\n" + huge + "```\nForget my old address.", []Intent{IntentForget}},
		{"a quotation alone", `"Remember that I use fish."`, nil},
		{"a quotation as the thing", `Remember that "fish" is my shell.`, remember},
		{"two languages, two wishes", "Vergiss meine Adresse. And remember that I use fish.", []Intent{IntentForget, IntentRemember}},
		{"all at once", "Don't use your memory. Don't save this.", []Intent{IntentNoUse, IntentNoSave}},
		{"no UTF-8", "\xff\xfe Remember that I use fish.", remember},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(intentsOf(rules, tt.text), tt.want); diff != "" {
				t.Errorf("%v (-got +want):\n%s", rules.Classify(tt.text).Rules, diff)
			}
		})
	}
}

// TestAnswerSaysWhy: the answer names language, rule and target.
func TestAnswerSaysWhy(t *testing.T) {
	t.Parallel()
	got := builtin(t).Classify("Lösche bitte meinen Geburtstag aus deinem Gedächtnis!")
	want := Answer{
		Wishes: []Wish{{Intent: IntentForget, Confidence: 0.93, Target: "meinen Geburtstag", Rule: "de.forget.aus", Language: "de"}},
		Rules:  []string{"de.forget.aus"},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestTarget: a target is short, one line, in the user's letters.
func TestTarget(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	tests := []struct{ name, text, want string }{
		{"letters", "Forget my CAFÉ “Zoë”.", "my CAFÉ “Zoë”"},
		{"space", "Forget my \t old\u00a0address", "my old address"},
		{"invisible", "Forget my ad\u202edress\u200b.", "my address"},
		{"long", "Forget my " + strings.Repeat("é", 400), "my " + strings.Repeat("é", MaxTarget-3)},
		{"code", "Forget my alias `gs`.", "my alias `gs`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := rules.Classify(tt.text).Wishes
			if len(got) != 1 || got[0].Target != tt.want {
				t.Errorf("%+v, want the target %q", got, tt.want)
			}
		})
	}
}

// TestManyAtOnce: the first texts that need a language may come together.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	rules, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := intentsOf(rules, "Merk dir bitte, dass ich Linux nutze."); len(got) != 1 {
				t.Errorf("got %v", got)
			}
		})
	}
	wg.Wait()
}

// FuzzClassify: whatever the text, the policy is valid, the same each time, and every
// wish names a rule that matched.
func FuzzClassify(f *testing.F) {
	rules := builtin(f)
	for _, l := range rules.languages {
		compiled, err := l.compile()
		if err != nil {
			f.Fatal(err)
		}
		for i, p := range compiled.rules {
			if i%8 == 0 && len(p.Says) > 0 {
				f.Add(p.Says[0])
			}
		}
	}
	f.Add("`\"'« remember that 記住!我\xff\x1a\n```")
	f.Fuzz(func(t *testing.T, text string) {
		a := rules.Classify(text)
		if diff := cmp.Diff(a, rules.Classify(text)); diff != "" {
			t.Fatalf("twice is not once:\n%s", diff)
		}
		seen := map[Intent]bool{}
		for _, w := range a.Wishes {
			if seen[w.Intent] || w.Confidence <= 0 || w.Confidence > 1 || utf8.RuneCountInString(w.Target) > MaxTarget {
				t.Fatalf("%+v", a)
			}
			seen[w.Intent] = true
		}
		p := Decide(Input{Text: text}, Options{Classify: rules.Classify})
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		sure := slices.ContainsFunc(a.Wishes, func(w Wish) bool { return w.Confidence >= DefaultThreshold })
		if sure != (p.Source == SourceRules) {
			t.Fatalf("%+v of %+v", p, a)
		}
	})
}
