package text

import (
	"strings"
	"testing"
)

// FuzzLetters compares the fast paths with the plain rules.
func FuzzLetters(f *testing.F) {
	for _, s := range []string{"", "house_rules", "AGENTS.md 2", "Ѕafety", "Sa\u00adfety", "é", "ａ", "a_b__c", "a*b**", "１＃", "\xff#", "x=y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := Letters(s), foreignLetters(s); got != want {
			t.Errorf("Letters(%q) = %q, by the general way %q", s, got, want)
		}
		want := !strings.ContainsAny(s, "#<=-&＃") && !strings.Contains(s, "**") && !strings.Contains(s, "__")
		if got := noHeading(s); got != want {
			t.Errorf("noHeading(%q) = %v", s, got)
		}
	})
}
