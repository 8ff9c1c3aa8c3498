package compiler

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/sections"
	"github.com/grapnelhq/grapnel/phases"
)

// simplePlace and simpleOrder put sections in order one by one, in passes over a list: the
// meaning of Before and After, in time that grows with the cube of their number.
type simplePlace struct {
	id     string
	pace   Pace
	beside string // the id that a custom section was put behind
}

func simpleOrder(list []simplePlace, custom []CustomSection) (order []simplePlace, homeless []string) {
	waiting := slices.SortedFunc(slices.Values(custom), func(a, b CustomSection) int { return strings.Compare(a.SectionID, b.SectionID) })
	insert := func(s CustomSection) bool {
		at := slices.IndexFunc(list, func(p simplePlace) bool { return p.id == anchor(&s) })
		if at < 0 {
			return false
		}
		p := simplePlace{id: s.SectionID, pace: cmp.Or(s.Pace, list[at].pace)}
		if s.Before == "" {
			p.beside = list[at].id
			family := []string{p.beside}
			for at++; at < len(list) && slices.Contains(family, list[at].beside); at++ {
				family = append(family, list[at].id)
			}
		}
		list = slices.Insert(list, at, p)
		return true
	}
	for progress := true; progress; {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, insert)
		progress = len(waiting) < before
	}
	for _, s := range waiting {
		homeless = append(homeless, s.SectionID)
		s.Before, s.After = "", ""
		insert(s)
	}
	return list, homeless
}

// randomCustom are custom sections beside one another, rows of the table, and nothing.
func randomCustom(random *rand.Rand) []CustomSection {
	custom := make([]CustomSection, random.IntN(30))
	name := func() string {
		switch n := random.IntN(20); {
		case n == 0:
			return "nowhere"
		case n < 4:
			return sections.All()[random.IntN(len(sections.All()))].ID
		default:
			return fmt.Sprint("c", random.IntN(len(custom)))
		}
	}
	for i := range custom {
		s := &custom[i]
		s.SectionID, s.Text = fmt.Sprint("c", i), "x"
		s.Stability = []phases.Stability{"", stable, dynamic}[random.IntN(3)]
		s.Pace = []Pace{"", "", PaceSession, PaceCall}[random.IntN(4)]
		switch random.IntN(5) {
		case 0:
			s.Before = name()
		case 1, 2, 3:
			s.After = name()
		}
	}
	return custom
}

// TestOrder: custom sections stand where they would if each were put there in its turn.
func TestOrder(t *testing.T) {
	t.Parallel()

	for seed := range uint64(20_000) {
		in := Input{Custom: randomCustom(rand.New(rand.NewPCG(seed, 1)))}
		c := &compilation{in: &in}
		c.makeOwn()
		o, list := newOrder(len(sections.All())+len(in.Custom)), []simplePlace{}
		for _, r := range sections.All() {
			o.insert(r.ID, c.own[r.ID], Pace(r.Pace), &o.ring)
			list = append(list, simplePlace{id: r.ID, pace: Pace(r.Pace)})
		}
		want, homeless := simpleOrder(list, in.Custom)
		c.insertCustom(o, true)
		var got []string
		for p := o.ring.next; p != &o.ring; p = p.next {
			got = append(got, fmt.Sprint(p.id, p.pace))
		}
		same := slices.EqualFunc(got, want, func(a string, b simplePlace) bool { return a == fmt.Sprint(b.id, b.pace) })
		lost := slices.EqualFunc(c.out.Diagnostics, homeless, func(d phases.Diagnostic, id string) bool { return d.Slot == id })
		if !same || !lost {
			t.Fatalf("seed %d: got %v, want %v; without an anchor %v, want %v", seed, got, want, c.out.Diagnostics, homeless)
		}
	}
}

// TestOrderOfMany: so many that only one pass over them ends in time.
func TestOrderOfMany(t *testing.T) {
	t.Parallel()

	const n = 20_000
	var in Input
	for i := range n { // each behind the next
		in.Custom = append(in.Custom, CustomSection{SectionID: fmt.Sprintf("c%05d", i), Text: "x", After: fmt.Sprintf("c%05d", i+1)})
	}
	in.Custom[n-1].After, in.Custom[n-1].Stability = "", dynamic
	p, err := Prepare(in)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(p.Sections, "c19999")
	if !slices.IsSortedFunc(p.Sections[at:at+n], func(a, b string) int { return strings.Compare(b, a) }) {
		t.Error("the chain is not in order")
	}
}
