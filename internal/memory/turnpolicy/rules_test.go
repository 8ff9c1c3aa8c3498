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
	return newRules(fstest.MapFS{"eo.json": {Data: []byte(file)}, "README.md": {Data: []byte("no rules")}})
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
		{"no language", `"language": "eo"`, `"language": ""`, "no language"},
		{"no expression", `memoru ke`, `memoru (ke`, "eo.remember: match: error parsing regexp"},
		{"bad unless", `"ridu"`, `"(ridu"`, "eo.remember: \"(ridu\": error parsing"},
		{"bad with", `["nomo"]`, `["nomo", "["]`, "eo.forget: \"[\": error parsing"},
		{"bad lead", `(?:bonvolu`, `(?:(bonvolu`, "lead: "},
		{"bad clause", `"clause": ", "`, `"clause": "("`, "clause: "},
		{"no such part", `{thing}`, `{think}`, "eo.remember: match: no part {think}"},
		{"parts in a cycle", `(?:mia|nia)\\b`, `{thing}`, "nested too deeply"},
		{"no pattern", `"^mi satas .+"`, `""`, "eo.fact: it has no expression"},
		{"foreign id", `"eo.fact"`, `"fact"`, "fact: the id does not begin"},
		{"id twice", `"eo.forget"`, `"eo.remember"`, "eo.remember: the id is there twice"},
		{"no intent", `"intent": "forget"`, `"intent": "erase"`, "eo.forget: its confidence, intent"},
		{"no confidence", `"confidence": 0.8`, `"confidence": 0`, "eo.forget: its confidence"},
		{"too sure", `"confidence": 0.8`, `"confidence": 8`, "eo.forget: its confidence"},
		{"place", `"at": "start"`, `"at": "end"`, `eo.remember: there is no place "end"`},
		{"target", `"at": "start"`, `"target": "x"`, "eo.remember: its confidence, intent, target"},
		{"refers", `"at": "clause"`, `"refers": "before"`, "eo.forget: its confidence, intent, target or refers"},
		{"refers where", `"at": "start"`, `"refers": "above"`, "eo.remember: its confidence, intent, target or refers"},
		{"rule with a category", `"at": "start"`, `"category": "fact"`, `unknown field "category"`},
		{"guard with an intent", `"match": "^cu "`, `"match": "^cu ", "intent": "forget"`, `unknown field "intent"`},
		{"guard of no intent", `["remember"]`, `["recall"]`, "eo.guard.ask: there is no such intent"},
		{"fact of no category", `"preference"`, `"joke"`, `eo.fact: there is no category "joke"`},
		{"fact with confidence", `"category": "preference"`, `"category": "preference", "confidence": 1`, `unknown field "confidence"`},
		{"no slot", `"slot": "home"`, `"slot": "pet"`, `eo.slot: there is no slot "pet"`},
		{"a word is missing", `"forges", `, ``, `eo.forget: none of the words is in "Forgesu mia nomo."`},
		{"empty word", `"forges"`, `""`, "an empty word"},
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
