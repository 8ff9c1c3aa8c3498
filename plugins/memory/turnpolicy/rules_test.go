package turnpolicy

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// toyFile is a rule file of a language that the package does not know.
const toyFile = `{
	"language": "eo", "words": ["memor", "forges", "mi "], "lead": "(?:bonvolu|saluton)[ ,!]+", "clause": ", ",
	"parts": {"thing": "(?:mi|{owned})", "owned": "(?:mia|nia)\\b"},
	"guards": [{"id": "eo.guard.ask", "match": "^cu ", "intents": ["remember"]}],
	"rules": [
		{"id": "eo.remember", "intent": "remember", "confidence": 0.9, "at": "start", "match": "memoru ke (?P<it>{thing}.+)$", "unless": ["ridu"], "says": ["Memoru ke mi dancas."]},
		{"id": "eo.forget", "intent": "forget", "confidence": 0.8, "at": "clause", "match": "forgesu (?P<it>{owned}.+?)[.]*$", "with": ["nomo"], "says": ["Forgesu mia nomo."]}
	],
	"facts": [{"id": "eo.fact", "category": "preference", "match": "^mi satas .+", "says": ["Mi satas teon."]}],
	"slots": [{"id": "eo.slot", "slot": "home", "match": "^mi logas en \\w+$", "says": ["Mi logas en Graz."]}]
}`

// newToy returns rules of the toy language alone.
func newToy(t *testing.T, file string) (*Rules, error) {
	t.Helper()
	return New(fstest.MapFS{"eo.json": {Data: []byte(file)}, "README.md": {Data: []byte("no rules")}})
}

// TestNewLanguage: a language is a file.
func TestNewLanguage(t *testing.T) {
	t.Parallel()
	rules, err := newToy(t, toyFile)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text string
		want       []Wish
	}{
		{"start", "Memoru ke mi dancas.", []Wish{{IntentRemember, 0.9, "", "eo.remember", "eo"}}},
		{"behind courtesies", "Saluton! bonvolu, memoru ke nia domo staras.", []Wish{{IntentRemember, 0.9, "", "eo.remember", "eo"}}},
		{"not behind a clause", "Nu, memoru ke mi dancas.", nil},
		{"part does not match", "Memoru ke li dancas.", nil},
		{"unless", "Memoru ke mi ridu.", nil},
		{"guard", "Cu bone, memoru ke mi dancas", nil},
		{"behind a clause", "Nu, bonvolu forgesu mia nomo.", []Wish{{IntentForget, 0.8, "mia nomo", "eo.forget", "eo"}}},
		{"guards of another intent", "Cu ne, forgesu mia nomo", []Wish{{IntentForget, 0.8, "mia nomo", "eo.forget", "eo"}}},
		{"with", "Forgesu mia domo.", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(rules.Classify(tt.text).Wishes, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
	if got := rules.Slot("Mi logas en Graz."); got != SlotHome {
		t.Errorf("slot %q", got)
	}
	want := []Fact{{Preference, "Mi satas teon", "Mi satas teon", "", false, "eo.fact"}}
	if diff := cmp.Diff(rules.Extract("Mi satas teon."), want); diff != "" {
		t.Errorf("facts (-got +want):\n%s", diff)
	}
}

// TestNewReports: a mistake is found when the rules are loaded, and is named by file
// and rule.
func TestNewReports(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, new, want string }{
		{"no JSON", `{`, `[`, "eo.json: invalid character"},
		{"unknown key", `"words"`, `"wordz"`, `unknown field "wordz"`},
		{"no language", `"language": "eo"`, `"language": ""`, "language: none"},
		{"no expression", `memoru ke`, `memoru (ke`, "eo.json: eo.remember: match: error parsing regexp"},
		{"bad unless", `"ridu"`, `"(ridu"`, "eo.remember: unless 0: error parsing"},
		{"bad with", `["nomo"]`, `["nomo", "["]`, "eo.forget: with 1: error parsing"},
		{"bad lead", `(?:bonvolu`, `(?:(bonvolu`, "lead: "},
		{"bad clause", `"clause": ", "`, `"clause": "("`, "clause: "},
		{"no such part", `{thing}`, `{think}`, "eo.remember: match: no part {think}"},
		{"parts in a ring", `(?:mia|nia)\\b`, `{thing}`, "too deep or too long"},
		{"no pattern", `"^mi satas .+"`, `""`, "eo.fact: match: empty"},
		{"foreign id", `"eo.fact"`, `"fact"`, `fact: id: does not begin with "eo."`},
		{"id twice", `"eo.forget"`, `"eo.remember"`, "eo.remember is also in eo.json"},
		{"no intent", `"intent": "forget"`, `"intent": "erase"`, `eo.forget: intent: "erase" is none of`},
		{"no confidence", `"confidence": 0.8`, `"confidence": 0`, "eo.forget: confidence: none"},
		{"too sure", `"confidence": 0.8`, `"confidence": 8`, "eo.forget: confidence: 8"},
		{"place", `"at": "start"`, `"at": "end"`, `eo.remember: at: "end" is none of`},
		{"target", `"at": "start"`, `"target": "x"`, "only what is to be forgotten"},
		{"refers", `"at": "clause"`, `"refers": "before"`, "only what is to be remembered"},
		{"refers where", `"at": "start"`, `"refers": "above"`, `refers: "above"`},
		{"rule with a category", `"at": "start"`, `"category": "fact"`, "a rule has no category"},
		{"guard with an intent", `"match": "^cu "`, `"match": "^cu ", "intent": "forget"`, "eo.guard.ask: a guard has"},
		{"guard of no intent", `["remember"]`, `["recall"]`, `intents: "recall"`},
		{"fact of no category", `"preference"`, `"joke"`, `eo.fact: category: "joke"`},
		{"fact with confidence", `"category": "preference"`, `"category": "preference", "confidence": 1`, "eo.fact: a fact has"},
		{"fact with a slot", `"category": "preference"`, `"category": "preference", "slot": "home"`, "eo.fact: a fact has"},
		{"no slot", `"slot": "home"`, `"slot": "pet"`, `eo.slot: slot: "pet" is none of`},
		{"slot with a category", `"slot": "home"`, `"slot": "home", "category": "fact"`, "eo.slot: a slot has"},
		{"rule with a slot", `"at": "start"`, `"slot": "home"`, "a rule has no category"},
		{"a word is missing", `"forges", `, ``, `eo.forget: none of the words is in "Forgesu mia nomo."`},
		{"empty word", `"forges"`, `""`, "words: one is empty"},
		{"too large", `"language"`, strings.Repeat(" ", maxRuleFile) + `"language"`, "more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := strings.Replace(toyFile, tt.old, tt.new, 1)
			if file == toyFile {
				t.Fatalf("the file has no %q", tt.old)
			}
			_, err := newToy(t, file)
			wantError(t, err, tt.want)
		})
	}
}

// TestZeroRules: no rules find nothing.
func TestZeroRules(t *testing.T) {
	t.Parallel()
	var r Rules
	if a, f := r.Classify("Remember that I use fish."), r.Extract("I prefer tabs."); len(a.Wishes)+len(f) > 0 {
		t.Errorf("got %+v and %+v", a, f)
	}
}
