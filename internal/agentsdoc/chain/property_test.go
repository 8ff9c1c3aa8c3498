package chain

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/sdk"
)

// randomChain is a chain of hostile texts under hostile names.
func randomChain(rng *rand.Rand) Chain {
	c := chainOf()
	c.Options.Lazy = rng.IntN(4) == 0
	c.Options.Budget.Files = 1 + rng.IntN(12)
	c.Options.Budget.File = 1 + rng.IntN(4000)
	if rng.IntN(2) == 0 {
		c.Options.Budget.Floor, c.Options.Budget.GlobalFloor = 1+rng.IntN(200), 1+rng.IntN(400)
	}
	for i := range rng.IntN(10) {
		scope := ScopeProject
		if i == 0 && rng.IntN(2) == 0 {
			scope = ScopeGlobal
		}
		display := agentsdoctest.Hostile(rng, rng.IntN(4)) + "/AGENTS.md"
		raw := normalText(agentsdoctest.Hostile(rng, rng.IntN(1<<rng.IntN(9))))
		s := source(scope, display, raw)
		if s.Text == "" {
			s.State = StateSkipped
		}
		s.bound(c.Options.Budget.File)
		if rng.IntN(8) == 0 {
			s.State, s.Reason, s.Text = StateSkipped, string(CodeUntrustedRoot), ""
		}
		c.Sources = append(c.Sources, s)
	}
	return c
}

func TestRenderInvariants(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 12))
	seen := map[State]int{}
	for range agentsdoctest.Rounds(3000) {
		c := randomChain(rng)
		full := Render(c, Budget{plenty, plenty})
		b := Budget{rng.IntN(len(full.Text) + 2), rng.IntN(full.Chars + 2)}
		r := Render(c, b)
		checkRendering(t, c, b, r)
		if again := Render(c, b); again.Text != r.Text {
			t.Fatal("the same arguments gave another text")
		}
		if r.Text != "" {
			for _, s := range r.Sources {
				seen[s.State]++
			}
		}
	}
	for _, state := range []State{StateKept, StateTruncated, StateOmitted, StateSkipped} {
		if seen[state] < agentsdoctest.Rounds(100) {
			t.Errorf("only %d sources were %s: the test sees too little", seen[state], state)
		}
	}
}

func FuzzRender(f *testing.F) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range 10 {
		f.Add(agentsdoctest.Hostile(rng, 20), agentsdoctest.Hostile(rng, 20), agentsdoctest.Hostile(rng, 2), uint16(rng.IntN(2000)), uint16(rng.IntN(2000)))
	}
	f.Fuzz(func(t *testing.T, far, near, directory string, bytes, chars uint16) {
		c := chainOf()
		for _, s := range []Source{source(ScopeProject, "AGENTS.md", normalText(far)), source(ScopeProject, directory+"/AGENTS.md", normalText(near))} {
			if s.Text == "" {
				s.State = StateSkipped
			}
			c.Sources = append(c.Sources, s)
		}
		b := Budget{int(bytes), int(chars)}
		checkRendering(t, c, b, Render(c, b))
	})
}

// checkRendering asserts what must hold of any chain and budget.
func checkRendering(t *testing.T, c Chain, b Budget, r Rendering) {
	t.Helper()
	if len(r.Text) > max(b.Bytes, 0) || utf8.RuneCountInString(r.Text) > max(b.Chars, 0) || !utf8.ValidString(r.Text) {
		t.Fatalf("%d bytes and %d characters in %+v", len(r.Text), r.Chars, b)
	}
	if len(r.Sources) != len(c.Sources) || r.Chars != utf8.RuneCountInString(r.Text) {
		t.Fatalf("%d sources of %d", len(r.Sources), len(c.Sources))
	}
	if r.Text == "" {
		for _, s := range r.Sources {
			if s.State == StateKept || s.State == StateTruncated {
				t.Fatalf("no text, and %+v", s)
			}
		}
		return
	}
	list, _ := parse(t, r.Text, c.Options.Lazy)
	for i, s := range r.Sources {
		if s.State != StateKept && s.State != StateTruncated {
			continue
		}
		if len(list) == 0 {
			t.Fatalf("nothing of %s is in the text", s.Display)
		}
		checkSource(t, c.Sources[i], s, list[0])
		list = list[1:]
	}
	if len(list) > 0 {
		t.Fatalf("forged sources %+v", list)
	}
	checkFloors(t, c, r)
}

// checkSource compares a source with what a reader finds of it.
func checkSource(t *testing.T, before, after Source, found parsed) {
	t.Helper()
	if found.path != sdk.PlainName(after.Display) || found.scope != after.Scope || found.kept != after.Kept || found.total != after.Bytes {
		t.Fatalf("%+v is read as %+v", after, found)
	}
	switch after.State {
	case StateKept:
		if found.truncated || found.body != before.Text || after.Kept != after.Bytes {
			t.Fatalf("%q is read as %+v", before.Text, found)
		}
	default:
		kept := len(found.body)
		if raw := before.origin.raw; raw != "" {
			kept = form{normal: true}.sourceBytes(raw, kept)
		}
		if !found.truncated || !strings.HasPrefix(before.Text, found.body) || int64(kept) != after.Kept {
			t.Fatalf("%q is read as %+v", before.Text, found)
		}
	}
}

// checkFloors asserts that nobody has anything at the cost of the floor of one
// who comes before.
func checkFloors(t *testing.T, c Chain, r Rendering) {
	t.Helper()
	a := &allocation{sources: c.Sources}
	after := map[*item]Source{}
	for i := range c.Sources {
		if c.Sources[i].usable() {
			it := newItem(&c.Sources[i], c.Options.Budget)
			a.items = append(a.items, it)
			after[it] = r.Sources[i]
		}
	}
	a.limitCount(c.Options.Budget.Files)
	ranked := a.ranked()
	for i, it := range ranked {
		s := after[it]
		last := i == len(ranked)-1 || after[ranked[i+1]].State == StateOmitted
		switch {
		case s.State == StateOmitted && !last:
			t.Fatalf("%s is omitted, and one that comes after is not", s.Display)
		case s.State == StateTruncated && !last:
			floor, _ := it.floorExtent()
			if least := Escaper().Cut(it.body, floor.Bytes, floor.Chars); s.DeliveredBytes < len(least) {
				t.Fatalf("%s has %d bytes, its floor gives %d", s.Display, s.DeliveredBytes, len(least))
			}
		}
	}
}
