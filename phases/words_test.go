package phases

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzValidVersion compares the check of versions with the pattern that defines it.
func FuzzValidVersion(f *testing.F) {
	pattern := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+~-]{0,63}$`)
	for _, s := range []string{"", "1", "1.2.3-rc.1+build~4", "-1", "1\n", "é", strings.Repeat("1", 64), strings.Repeat("1", 65)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := validVersion(s), pattern.MatchString(s); got != want {
			t.Errorf("validVersion(%q) = %v", s, got)
		}
	})
}
