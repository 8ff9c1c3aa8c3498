package secret

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/publictest"
)

// TestPublicSecrets counts what the rules find in public dialogues; -v prints it. Some of it may well be meant as a
// password or a number of a card. It fails above one in 50,000 utterances.
func TestPublicSecrets(t *testing.T) {
	t.Parallel()
	scanner := New()
	count, found := 0, 0
	for _, u := range publictest.Load(t) {
		count++
		for _, f := range scanner.Find(u.Text) {
			found++
			t.Logf("%s %s %q: %q", u.ID, f.Pattern, u.Text[f.Start:f.End], u.Text)
		}
	}
	t.Logf("%d findings in %d utterances", found, count)
	if 50_000*found > count {
		t.Error("more than one finding in 50,000 utterances")
	}
}
