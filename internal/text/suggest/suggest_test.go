package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"fail_closed", "best_effort", "fallback", "a", "b"}
	tests := []struct{ name, in, want string }{
		{"itself", "fallback", "fallback"},
		{"one letter missing", "failclosed", "fail_closed"},
		{"a third and one more", "falxxxck", "fallback"},
		{"too far", "fxxxxxck", ""},
		{"the first of equals", "c", "a"},
		{"empty", "", "a"},
		{"letters, not bytes", "fällbäck", "fallback"},
	}
	for _, tt := range tests {
		if got := nearest(tt.in, known); got != tt.want {
			t.Errorf("%s: nearest to %q is %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
	if got := nearest("x", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := DidYouMean("falback", known); got != ` (did you mean "fallback"?)` {
		t.Errorf("got %q", got)
	}
	if got := DidYouMean("something else", known); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestNearestToALongName: a name that a model has made up costs little, however
// long it is. Comparing each letter of it took over ten minutes.
func TestNearestToALongName(t *testing.T) {
	t.Parallel()
	known := make([]string, 200)
	for i := range known {
		known[i] = strings.Repeat("a", 128)
	}
	if got := nearest(strings.Repeat("a", 16<<20), known); got != "" {
		t.Errorf("got %q", got)
	}
}
