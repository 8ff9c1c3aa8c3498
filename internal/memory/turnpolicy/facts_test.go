package turnpolicy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	tests := []struct {
		name, text string
		want       []Fact
	}{
		{"nothing", "Refactor the parser.", nil},
		{"asked", "Remember that I'm allergic to nuts.", []Fact{
			{Factual, "I'm allergic to nuts", "Remember that I'm allergic to nuts", "", true, "en.remember.that"},
		}},
		{"asked with a category", "Also remember I hate Mondays!", []Fact{
			{Preference, "I hate Mondays", "Also remember I hate Mondays", "", true, "en.remember.own"},
		}},
		{"asked for what is before", "I moved to Graz. Please remember that.", []Fact{
			{Factual, "I moved to Graz", "I moved to Graz. Please remember that", "home", true, "en.remember.refers"},
		}},
		{"asked for a list", "Remember the following:\n- staging is kiwi\n- we use pnpm\n\nNow fix CI.", []Fact{
			{Factual, "staging is kiwi", "Remember the following: - staging is kiwi", "", true, "en.remember.following"},
			{Factual, "we use pnpm", "Remember the following: - staging is kiwi - we use pnpm", "", true, "en.remember.following"},
		}},
		{"nothing before", "Please remember that.", nil},
		{"stated", "I prefer tabs. We decided to drop MySQL. My name is Zoë. From now on, the API is v2.", []Fact{
			{Preference, "I prefer tabs", "I prefer tabs", "", false, "en.fact.prefer"},
			{Decision, "We decided to drop MySQL", "We decided to drop MySQL", "", false, "en.fact.decided"},
			{Factual, "My name is Zoë", "My name is Zoë", SlotName, false, "en.fact.name"},
		}},
		{"tasks and instructions", "I must send the report by Friday. Always answer me in Dutch.", []Fact{
			{Task, "I must send the report by Friday", "I must send the report by Friday", "", false, "en.fact.must"},
			{Instruction, "Always answer me in Dutch", "Always answer me in Dutch", "reply_language", false, "en.fact.always-me"},
		}},
		{"forbidden", "Don't save this: my name is Zoë.", nil},
		{"forgotten", "Forget that I live in Graz.", nil},
		{"once", "I live in Graz. I LIVE in Graz!", []Fact{{Factual, "I live in Graz", "I live in Graz", "home", false, "en.fact.live"}}},
		{"quoted", "> I live in Graz.\nShe said \"I prefer tabs.\"", nil},
		{"asked in a question", "Do you remember that I live in Graz?", nil},
		{"another language", "Je préfère les réponses courtes.", nil},
		{"without spaces", "記住我對花生過敏。我喜欢茶。", []Fact{
			{Factual, "我對花生過敏", "記住我對花生過敏", "", true, "zh.remember.jizhu"},
		}},
		{"pasted", strings.Repeat("It works. ", 20) + "I prefer tabs. " + strings.Repeat("It works. ", 20), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(rules.Extract(tt.text), tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestAboutTheUser: only what users say of themselves is stored, or ask to remember.
func TestAboutTheUser(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "about-the-user.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		text, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		var got []string
		for _, f := range builtin(t).Extract(text) {
			got = append(got, f.Text)
		}
		if all := strings.Join(got, " | "); all != want {
			t.Errorf("%q: stored %q, want %q", text, all, want)
		}
	}
}

// TestExtractBounds: not too many facts, and none too long.
func TestExtractBounds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "I prefer tea number %d. ", i)
	}
	if got := builtin(t).Extract(b.String()); len(got) != MaxFacts {
		t.Errorf("%d facts", len(got))
	}
	got := builtin(t).Extract("Remember that " + strings.Repeat("é", 1000))
	if len(got) != 1 || utf8.RuneCountInString(got[0].Text) != MaxFactText || utf8.RuneCountInString(got[0].Evidence) != MaxEvidence {
		t.Errorf("got %+v", got)
	}
}

// FuzzExtract: facts are valid, in bounds, not twice, and the same each time.
func FuzzExtract(f *testing.F) {
	rules := builtin(f)
	f.Add("Remember the following:\n- a\n- b\n\nI prefer tabs. 記住我對花生過敏。")
	f.Add("I moved to Graz. Please remember that. Don't save this.")
	f.Fuzz(func(t *testing.T, text string) {
		got := rules.Extract(text)
		if diff := cmp.Diff(got, rules.Extract(text)); diff != "" {
			t.Fatalf("twice is not once:\n%s", diff)
		}
		if len(got) > MaxFacts {
			t.Fatalf("%d facts", len(got))
		}
		seen := map[string]bool{}
		for _, fact := range got {
			if fact.Rule == "" || seen[fact.Text] || utf8.RuneCountInString(fact.Text) > MaxFactText || utf8.RuneCountInString(fact.Evidence) > MaxEvidence {
				t.Fatalf("%+v", got)
			}
			seen[fact.Text] = true
		}
	})
}
