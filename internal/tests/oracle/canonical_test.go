package oracle

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// fragments are glued into texts that are often JSON and often just not.
var fragments = []string{
	"{", "}", "[", "]", ",", ":", `"a"`, `"b"`, `"é"`, `"😀"`, `"\n"`, `"\u00e9"`, `"\/"`, "1", "-0", "0", "12", "012",
	"1.5", "1e2", "-7", "123456789012345", "1234567890123456", "true", "false", "null", " ", `{"a":1,"b":2}`, `{"b":1,"a":2}`,
	`"` + "\uffff" + `"`, "\"\xff\"", "tru", `"`, "\\",
}

// What digest.JSON gives is what jcs gives, whichever path it took.
func TestJSONEqualsJCS(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	valid := 0
	for range 200_000 {
		var text strings.Builder
		for range 1 + rng.IntN(7) {
			text.WriteString(fragments[rng.IntN(len(fragments))])
		}
		raw := []byte(text.String())
		got, err := digest.JSON(nil, raw)
		want, jcsErr := jcs.Transform(raw)
		if (err == nil) != (jcsErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("JSON(%q) = %q, %v; jcs: %q, %v", raw, got, err, want, jcsErr)
		}
		if err == nil {
			valid++
		}
	}
	if valid < 5_000 {
		t.Errorf("only %d texts were JSON: the test has lost its point", valid)
	}
}
