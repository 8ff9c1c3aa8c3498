package phases

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzWords compares isWord with the regular expressions that say the same.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "a", "Z9", "-a", "a.b:c/d-e_f", "a#b", "1.2+3~4", "a\n", "é", "aé", "a@", "a[", "a`", "a{", "\xff", "a\xe1", " a"} {
		f.Add(s)
	}
	for _, n := range []int{64, 65, 128, 129, 256, 257} {
		f.Add(strings.Repeat("a", n))
	}
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$`)
	id := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/#-]*$`)
	version := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+~-]{0,63}$`)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := ValidName(s), name.MatchString(s); got != want {
			t.Errorf("name %q: %v, want %v", s, got, want)
		}
		if got, want := ValidID(s), len(s) <= MaxIDBytes && id.MatchString(s); got != want {
			t.Errorf("id %q: %v, want %v", s, got, want)
		}
		if got, want := isWord(s, versionMarks, maxVersionBytes), version.MatchString(s); got != want {
			t.Errorf("version %q: %v, want %v", s, got, want)
		}
	})
}
