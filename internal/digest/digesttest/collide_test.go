package digesttest_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
)

func TestCollide(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 8, 16, 24, 40} {
		text := "## Rules\n\n" + strings.Repeat("Ask before you delete a file. ", 5)
		other := digesttest.Collide(text, at)
		if other == text || len(other) != len(text) || digest.Fingerprint(nil, other) != digest.Fingerprint(nil, text) ||
			digest.SHA256([]byte(other)) == digest.SHA256([]byte(text)) {
			t.Errorf("from byte %d on: %q does not collide with %q", at, other, text)
		}
	}
}
