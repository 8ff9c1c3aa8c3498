package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextRules(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		text         string
		valid, clean bool
		repaired     string
	}{
		{"empty", "", true, true, ""},
		{"plain", "grüße 🙂 “x” שלום", true, true, "grüße 🙂 “x” שלום"},
		{"right-to-left mark", "a\u200Fb", true, true, "a\u200Fb"},
		{"NUL", "a\x00b", false, false, "a\uFFFDb"},
		{"invalid byte", "a\xffb", false, false, "a\uFFFDb"},
		{"cut rune", "a\xe2\x80", false, false, "a\uFFFD"},
		{"lone surrogate", "a\xed\xa0\x80b", false, false, "a\uFFFDb"},
		{"override", "a\u202Eb", true, false, "a\uFFFDb"},
		{"isolate", "\u2066b\u2069", true, false, "\uFFFDb\uFFFD"},
		{"override behind quotes", "’’’\u202A", true, false, "’’’\uFFFD"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ruleValid.holds(c.text); got != c.valid {
				t.Errorf("valid: got %v, want %v", got, c.valid)
			}
			if got := ruleClean.holds(c.text); got != c.clean {
				t.Errorf("clean: got %v, want %v", got, c.clean)
			}
			if got := ruleClean.repaired(c.text); got != c.repaired {
				t.Errorf("repaired: got %q, want %q", got, c.repaired)
			}
			if !c.clean && ruleClean.broken(c.text) == "" {
				t.Error("it does not say what is wrong")
			}
		})
	}
}

func TestJSONRules(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		text         string
		valid, clean bool
		repaired     string
	}{
		{"plain", `{"a": "grüße\n\u00e4"}`, true, true, `{"a": "grüße\n\u00e4"}`},
		{"pair", `"\ud83d\ude42"`, true, true, `"\ud83d\ude42"`},
		{"escaped backslash", `"\\u0000"`, true, true, `"\\u0000"`},
		{"escaped NUL", `"a\u0000b"`, false, false, `"a\ufffdb"`},
		{"high surrogate", `"\ud83d!"`, false, false, `"\ufffd!"`},
		{"low surrogate", `"\uDE42"`, false, false, `"\ufffd"`},
		{"two high surrogates", `"\ud83d\ud83d\ude42"`, false, false, `"\ufffd\ud83d\ude42"`},
		{"override", `"\u202e"`, true, false, `"\ufffd"`},
		{"bare override", "\"\u202e\"", true, false, "\"\uFFFD\""},
		{"NUL", "\"\x00\"", false, false, "\"\uFFFD\""},
		{"invalid byte", "\"\xff\"", false, false, "\"\uFFFD\""},
		{"no escape", `"\uZZZZ"`, true, true, `"\uZZZZ"`},
		{"cut escape", `"\u00`, true, true, `"\u00`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ruleValid.holdsJSON([]byte(c.text)); got != c.valid {
				t.Errorf("valid: got %v, want %v", got, c.valid)
			}
			if got := ruleClean.holdsJSON([]byte(c.text)); got != c.clean {
				t.Errorf("clean: got %v, want %v", got, c.clean)
			}
			if got := string(ruleClean.repairedJSON([]byte(c.text))); got != c.repaired {
				t.Errorf("repaired: got %s, want %s", got, c.repaired)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x00\xff\u202e’\xe2\x80")
	f.Add(`{"a":"\ud800\u0000\\u202e\u202e"}`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, rule := range []textRule{ruleValid, ruleClean} {
			fixed := rule.repaired(s)
			if !rule.holds(fixed) || !utf8.ValidString(fixed) || strings.ContainsRune(fixed, 0) {
				t.Errorf("%q: repaired to %q", s, fixed)
			}
			if rule.holds(s) && fixed != s {
				t.Errorf("%q keeps the rule and became %q", s, fixed)
			}
			raw := rule.repairedJSON([]byte(s))
			if !rule.holdsJSON(raw) {
				t.Errorf("%q: repaired to %q", s, raw)
			}
			if rule.holdsJSON([]byte(s)) && string(raw) != s {
				t.Errorf("%q keeps the rule and became %q", s, raw)
			}
			if json.Valid([]byte(s)) && !json.Valid(raw) {
				t.Errorf("%q is JSON, %q is not", s, raw)
			}
		}
	})
}
