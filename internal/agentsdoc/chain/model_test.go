package chain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

// The model is the allocation once more, written from the specification step by
// step, apart from the code that it checks and with no eye on speed. It shares
// with that only what has tests of its own: escaping, cutting, and the lines.

// pair is a number of bytes and of characters.
type pair [2]int

func sizeOf(texts ...string) (p pair) {
	for _, text := range texts {
		p = p.plus(pair{len(text), utf8.RuneCountInString(text)})
	}
	return p
}

func (p pair) plus(q pair) pair  { return pair{p[0] + q[0], p[1] + q[1]} }
func (p pair) minus(q pair) pair { return pair{p[0] - q[0], p[1] - q[1]} }
func (p pair) in(q pair) bool    { return p[0] <= q[0] && p[1] <= q[1] }

// modelled is a source of the model.
type modelled struct {
	src        Source
	body       string // escaped, with the LF at its end
	most       string // what of it the limit of one file leaves
	cutByLimit bool
	d, m       pair

	in    bool
	room  pair
	piece string // of a body that is cut
	whole bool
}

// model is the text that the specification gives for a chain. The sources may have
// only the beginnings of their texts, which are whole here.
func model(c Chain, texts []string, budget pair) string {
	limits := c.Options.Budget
	var all []*modelled
	for i, s := range c.Sources {
		if s.Text != "" {
			body, _ := Escaper().Escape(s.Text)
			x := &modelled{src: s, body: body + "\n", most: body + "\n"}
			if whole, _ := Escaper().Escape(strings.TrimRight(texts[i], "\n")); len(whole) > limits.File {
				x.cutByLimit = true
				x.most = prompttext.Prefix(body, limits.File, math.MaxInt)
			}
			path := prompttext.Name(s.Display)
			x.d = sizeOf(delimiterLine(path, s.Scope, s.Bytes, s.Bytes))
			x.m = sizeOf("\n", truncatedLine(path, s.Bytes, s.Bytes))
			all = append(all, x)
		}
	}
	var order []*modelled // of the floors
	for _, scope := range []Scope{ScopeManaged, ScopeGlobal} {
		for _, x := range all {
			if x.src.Scope == scope {
				order = append(order, x)
			}
		}
	}
	for _, x := range slices.Backward(all) {
		if x.src.Scope == ScopeProject {
			order = append(order, x)
		}
	}
	order = order[:min(len(order), limits.Files)]
	if len(order) == 0 || budget[0] <= 0 || budget[1] <= 0 {
		return ""
	}
	left := budget.minus(sizeOf(header(&c.Options)))
	return modelShare(c, all, order, left)
}

// modelShare gives out what the header leaves, and writes the text.
func modelShare(c Chain, all, order []*modelled, left pair) string {
	var everything pair
	for _, x := range order {
		everything = everything.plus(x.d).plus(sizeOf(x.most))
		if x.cutByLimit {
			everything = everything.plus(x.m)
		}
	}
	roomForAll := everything.in(left)
	switch {
	case roomForAll:
		left = left.minus(everything)
		for _, x := range order {
			x.in, x.whole = true, !x.cutByLimit
			x.piece = Escaper().Cut(strings.TrimSuffix(x.body, "\n"), len(x.most), math.MaxInt)
		}
	case !order[0].d.plus(order[0].m).plus(pair{1, 1}).in(left):
		return ""
	default:
		left = modelFloors(c.Options.Budget, order, left)
	}
	var omissions []string
	for _, x := range all {
		if !x.in {
			omissions = append(omissions, omittedLine(prompttext.Name(x.src.Display), x.src.Bytes))
		}
	}
	summary := ""
	if missing := len(omissions); !sizeOf(omissions...).in(left) {
		omissions = nil
		if summary = omittedFilesLine(missing); !sizeOf(summary).in(left) {
			summary = ""
		}
	}
	left = left.minus(sizeOf(append(omissions, summary)...))
	if !roomForAll {
		modelRest(all, left)
	}
	return modelPrint(c, all, summary, omissions != nil)
}

// modelFloors is step 5.
func modelFloors(limits Limits, order []*modelled, left pair) pair {
	for _, x := range order {
		floor := limits.Floor
		if x.src.Scope != ScopeProject {
			floor = limits.GlobalFloor
		}
		first, need := x.most, x.d
		if x.cutByLimit || len(first) > floor {
			first = prompttext.Prefix(first, floor, math.MaxInt)
			need = need.plus(x.m)
		}
		if need = need.plus(sizeOf(first)); need.in(left) {
			x.in, x.room, left = true, sizeOf(first), left.minus(need)
			if first == x.most && !x.cutByLimit {
				x.whole = true
			}
			continue
		}
		if rest := left.minus(x.d).minus(x.m); (pair{1, 1}).in(rest) {
			x.in, x.room, left = true, rest, pair{}
		}
		break
	}
	return left
}

// modelRest is steps 7 and 8.
func modelRest(all []*modelled, left pair) {
	for _, x := range slices.Backward(all) {
		if !x.in || x.whole {
			continue
		}
		if missing := sizeOf(x.most).minus(x.room).minus(x.m); !x.cutByLimit && missing.in(left) {
			x.whole = true
			left = left.minus(missing)
			continue
		}
		room := x.room.plus(left)
		x.piece = Escaper().Cut(strings.TrimSuffix(x.body, "\n"), min(room[0], len(x.most)), room[1])
		left = room.minus(sizeOf(x.piece))
	}
}

// modelPrint is step 9.
func modelPrint(c Chain, all []*modelled, summary string, named bool) string {
	text := header(&c.Options) + summary
	for _, x := range all {
		path := prompttext.Name(x.src.Display)
		switch {
		case x.whole:
			text += delimiterLine(path, x.src.Scope, x.src.Bytes, x.src.Bytes) + x.body
		case x.in:
			kept := int64(len(agentsdoctest.Unescape(x.piece)))
			if x.piece != "" {
				x.piece += "\n"
			}
			text += delimiterLine(path, x.src.Scope, kept, x.src.Bytes) + x.piece + truncatedLine(path, kept, x.src.Bytes)
		case named:
			text += omittedLine(path, x.src.Bytes)
		}
	}
	return text
}

// modelChain is a random chain without what the model leaves out, and the texts.
func modelChain(rng *rand.Rand) (Chain, []string) {
	c := chainOf()
	c.Options.Budget = Limits{File: 1 + rng.IntN(3000), Files: 1 + rng.IntN(9), Floor: 1 + rng.IntN(300), GlobalFloor: 1 + rng.IntN(600)}
	var texts []string
	add := func(scope Scope, display string) {
		text := agentsdoctest.Hostile(rng, rng.IntN(1<<rng.IntN(8)))
		s := source(scope, display, text)
		s.bound(c.Options.Budget.File)
		if s.Text == "" {
			s.State = StateSkipped
		}
		c.Sources, texts = append(c.Sources, s), append(texts, text)
	}
	if rng.IntN(3) == 0 {
		add(ScopeManaged, "/etc/"+agentsdoctest.Hostile(rng, 1))
	}
	if rng.IntN(2) == 0 {
		add(ScopeGlobal, "~")
	}
	for i := range rng.IntN(8) {
		add(ScopeProject, fmt.Sprintf("d%d/%s/AGENTS.md", i, agentsdoctest.Hostile(rng, rng.IntN(3))))
	}
	return c, texts
}

func TestAllocationAgainstTheModel(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(71, 72))
	texts := 0
	for range agentsdoctest.Rounds(6000) {
		c, whole := modelChain(rng)
		full := Render(c, Budget{plenty, plenty})
		b := Budget{rng.IntN(len(full.Text) + 100), rng.IntN(full.Chars + 100)}
		if rng.IntN(3) == 0 {
			b.Chars = plenty
		}
		want := model(c, whole, pair{b.Bytes, b.Chars})
		if diff := cmp.Diff(Render(c, b).Text, want); diff != "" {
			t.Fatalf("%+v, %+v (-got +want)\n%s", b, c.Options.Budget, diff)
		}
		if strings.Contains(want, "\n"+TruncatedWord) {
			texts++
		}
	}
	if texts < agentsdoctest.Rounds(1000) {
		t.Errorf("only %d texts were cut: the test sees too little", texts)
	}
}
