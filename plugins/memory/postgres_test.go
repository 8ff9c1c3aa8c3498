package memory

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/toolset"
)

// TestPostgres: two processes share one memory on a server.
func TestPostgres(t *testing.T) {
	t.Parallel()
	dsn := postgres.NewDSN(t)
	one, other := configured(t, dsn, nil, nil), configured(t, dsn, nil, nil)
	begin(t, one, ada("1")).whole("Remember that my dog is called Rex. I live in Graz.")
	begin(t, other, ada("2")).whole("I live in Vienna.")
	x := begin(t, other, ada("3")).says("What is my dog called, and where do I live?")
	x.fine()
	if got := x.recalled(); len(got) != 2 || !contains(got, "Rex") || !contains(got, "Vienna") {
		t.Errorf("recalled %q", got)
	}
	var m toolset.Matches
	if no := x.call(toolset.Forget, args{"query": "my dog"}, &m); no != "" || m.Count != 1 {
		t.Fatalf("%q %+v", no, m)
	}
	// The confirmation of one process holds in the other.
	y := begin(t, one, ada("4")).says("Hello!")
	var gone toolset.Forgotten
	if no := y.call(toolset.Forget, args{"query": "my dog", "confirmation": m.Confirmation}, &gone); no != "" || gone.Count != 1 {
		t.Errorf("%q %+v", no, gone)
	}
	if got := memories(t, other); len(got) != 1 {
		t.Errorf("memories %q", got)
	}
}
