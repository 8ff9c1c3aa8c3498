package prefixcache

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers/anthropic"
	"github.com/grapnelhq/grapnel/providers/openai"
)

// served is what became of one turn.
type served struct {
	usage

	// head is the length of tools and system prompt.
	head int
	// predicted is what the compiler expected to be read; nil if nothing.
	predicted *int
}

// cost is what the prompts cost in uncached tokens: to Anthropic a token read
// counts a tenth, and one written to live for five minutes a quarter more. What
// is neither counts whole.
func cost(u usage) float64 {
	return 0.1*float64(u.read) + 1.25*float64(u.written) + float64(u.input-u.read-u.written)
}

func total(list []served) (u usage) {
	for _, s := range list {
		u.add(s.usage)
	}
	return u
}

// headShare is the part of tools and system prompts that came out of the cache.
func headShare(list []served) float64 {
	var u usage
	for _, s := range list {
		u.add(usage{input: s.head, read: min(s.read, s.head)})
	}
	return u.share()
}

func headOf(blocks []block) (tokens int) {
	for i := range blocks {
		if strings.HasPrefix(blocks[i].text, "tools\n") || strings.HasPrefix(blocks[i].text, "system\n") {
			tokens += blocks[i].tokens
		}
	}
	return tokens
}

func counter(t testing.TB) func(string) int {
	t.Helper()
	c, err := history.NewCounter(history.CounterOptions{Encoding: history.Cl100kBase})
	if err != nil {
		t.Fatal(err)
	}
	return c.Count
}

// known is what the facts say of a model.
func known(t testing.TB, provider, model string) (compiler.ModelCache, compiler.CacheRules) {
	t.Helper()
	table, err := compiler.LoadCacheFacts()
	if err != nil {
		t.Fatal(err)
	}
	found, ok := table.Lookup(provider, model)
	if !ok || !found.Listed {
		t.Fatalf("nothing is known of %s", model)
	}
	rules, err := found.Rules("")
	if err != nil {
		t.Fatal(err)
	}
	return found, rules
}

// onAnthropic sends the session to the model of Anthropic's cache.
func onAnthropic(t testing.TB, a arrangement, l length, count func(string) int) (list []served) {
	t.Helper()
	const model = "claude-sonnet-5"
	k, rules := known(t, compiler.Anthropic, model)
	cache, now := marked{rules: k, entries: map[string]entry{}}, time.Time{}
	for _, s := range session(t, a, l, model, &rules, count) {
		built, err := anthropic.Build(s.request, anthropic.Options{CacheConversation: true})
		if err != nil || len(built.Warnings) > 0 {
			t.Fatalf("%s: %v, %v", a.name, err, built.Warnings)
		}
		blocks := read(t, built.Params, count)
		now = now.Add(pause)
		list = append(list, served{cache.serve(t, now, blocks), headOf(blocks), s.predicted})
	}
	return list
}

// onOpenAI sends it to the model of OpenAI's.
func onOpenAI(t testing.TB, a arrangement, l length, count func(string) int) (list []served) {
	t.Helper()
	const model = "gpt-5"
	k, rules := known(t, compiler.OpenAI, model)
	cache, now := automatic{rules: k, lifetime: rules.Lifetime, count: count}, time.Time{}
	for _, s := range session(t, a, l, model, &rules, count) {
		built, err := openai.Build(s.request, openai.Options{})
		if err != nil || len(built.Warnings) > 0 {
			t.Fatalf("%s: %v, %v", a.name, err, built.Warnings)
		}
		blocks := read(t, built.Params, count)
		now = now.Add(pause)
		list = append(list, served{cache.serve(now, blocks), headOf(blocks), s.predicted})
	}
	return list
}

// TestFiftyTurns measures a session with one request a turn; a shorter one has three, and without GRAPNEL_LONG it is
// shorter, too. The numbers are printed and not compared with others: what is checked has
// to be so whatever the texts are.
func TestFiftyTurns(t *testing.T) {
	t.Parallel()

	lengths := []length{{12, 1}}
	if os.Getenv("GRAPNEL_LONG") == "1" {
		lengths = []length{{50, 1}, {15, 3}}
	}
	for _, l := range lengths {
		t.Run(fmt.Sprintf("%d turns of %d requests", l.turns, l.rounds), func(t *testing.T) {
			t.Parallel()

			measure(t, l)
		})
	}
}

func measure(t *testing.T, l length) {
	t.Helper()
	count := counter(t)
	var table strings.Builder
	line := func(cells ...any) { fmt.Fprintf(&table, "\n%-22s %9v %9v %9v %9v %9v %9v", cells...) }
	line(fmt.Sprintf("%d x %d, in %%", l.turns, l.rounds), "read", "of head", "last", "written", "cost", "openai")
	sums := map[string]sum{}
	for _, a := range arrangements() {
		marked, automatic := onAnthropic(t, a, l, count), onOpenAI(t, a, l, count)
		s := sum{marked: total(marked), automatic: total(automatic)}
		line(a.name, percent(s.marked.share()), percent(headShare(marked)), percent(marked[len(marked)-1].share()),
			percent(float64(s.marked.written)/float64(s.marked.input)), percent(cost(s.marked)/float64(s.marked.input)), percent(s.automatic.share()))
		for _, list := range [][]served{marked, automatic} {
			checkServed(t, a.name, list)
			if l.rounds == 1 && !a.plain && a.behind == nil {
				checkPredicted(t, a.name, list)
			}
		}
		if a.beats != "" {
			s.checkBetter(t, a, sums[a.beats])
		}
		sums[a.name] = s
	}
	t.Log(table.String())
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) }

// sum is a whole session on both caches.
type sum struct{ marked, automatic usage }

// checkBetter wants more to come out of the cache than in another arrangement of
// the same texts, and marks that are worth their price.
func (s sum) checkBetter(t *testing.T, a arrangement, other sum) {
	t.Helper()
	if s.marked.read <= other.marked.read || cost(s.marked) >= cost(other.marked) {
		t.Errorf("anthropic: %s with %+v is no better than %s with %+v", a.name, s.marked, a.beats, other.marked)
	}
	// To a cache that finds prefixes by itself, plain text and the reference order
	// are the same bytes.
	if s.automatic.read < other.automatic.read || s.automatic.read == other.automatic.read && a.beats != "plain" {
		t.Errorf("openai: %s with %+v is no better than %s with %+v", a.name, s.automatic, a.beats, other.automatic)
	}
	if d := s.marked.input - other.marked.input; d*100 > s.marked.input || -d*100 > s.marked.input {
		t.Errorf("%s has %d tokens, %s %d: these are not the same texts", a.name, s.marked.input, a.beats, other.marked.input)
	}
}

// checkServed: nothing comes out of an empty cache, and no request reads and
// writes more than there is.
func checkServed(t *testing.T, name string, list []served) {
	t.Helper()
	for i, u := range list {
		if u.read+u.written > u.input || i == 0 && u.read > 0 || i > 1 && u.read == 0 {
			t.Errorf("%s, request %d: %+v", name, i, u.usage)
		}
	}
}

// checkPredicted compares what the compiler predicts with what is read, where the
// sections stand in the system prompt and what follows them is new. The compiler
// counts the tokens of tools in another form, and sections without what joins them.
func checkPredicted(t *testing.T, name string, list []served) {
	t.Helper()
	for i, u := range list[1:] {
		if u.predicted == nil {
			t.Fatalf("%s: no prediction for request %d", name, i+1)
		}
		if d := *u.predicted - u.read; d*20 > u.read || -d*20 > u.read {
			t.Errorf("%s: predicted %d for request %d, read %d", name, *u.predicted, i+1, u.read)
		}
	}
}
