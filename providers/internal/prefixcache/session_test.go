package prefixcache

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// The session that is measured: a coding agent at work. Requests are half a minute
// apart.
const (
	pause       = 30 * time.Second
	agentsChars = 16_000
	recallChars = 1_600
)

// write makes so many characters of English words, the same for the same seed.
func write(seed uint64, chars int) string {
	words := strings.Fields(`the build fails when tests run under race detector so read every file before you change
		it and keep functions short because reviewers look at diffs not at intentions never push to main without asking
		use make lint to check formatting prefer tables over branches errors are wrapped with context where they happen
		documentation lives beside code names follow the glossary migrations are written once and never edited later
		parser scanner cache plugin session turn prompt token budget section owner manifest ledger policy grant store`)
	rng := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for b.Len() < chars {
		b.WriteString(words[rng.IntN(len(words))])
		if rng.IntN(12) == 0 {
			b.WriteString(".\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String()[:chars])
}

// tools are eleven that are offered and four that are hidden, for which the
// compiler offers a twelfth, request_tools.
func tools() []phases.MergedTool {
	var out []phases.MergedTool
	for i := range 15 {
		t := phases.Tool{
			Name: fmt.Sprintf("tool_%02d", i), Description: write(uint64(100+i), 300),
			InputSchema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"the file to work on"},
				"lines":{"type":"array","items":{"type":"integer"},"description":"first and last line"},"force":{"type":"boolean"}}}`),
		}
		if i >= 11 {
			t.HiddenDomain = []string{"calendar", "mail"}[i%2]
		}
		out = append(out, phases.MergedTool{Name: t.Name, Owner: "files", BundleID: "files", Hash: strconv.Itoa(i), Definition: t})
	}
	return out
}

// input is what is compiled in a turn: a text for each of the seventeen rows.
// The recall differs in each turn; other sections change now and then.
func input(turn int, order compiler.Order) compiler.Input {
	hook := func(id string, stability phases.Stability, seed, chars int) phases.MergedSection {
		return phases.MergedSection{SectionID: id, Title: id, Stability: stability, Owner: "plugin", Content: write(uint64(seed), chars)}
	}
	in := compiler.Input{
		Order: order,
		Host: compiler.HostTexts{
			Identity: write(1, 500), SoulCore: write(2, 1500), IdentityCore: write(3, 900), UserPersona: write(4, 500),
			ToolRecovery: true, TaskTools: true, DynamicContext: write(uint64(5000+turn/8), 400),
		},
		Tools: tools(), ToolCalling: true,
		Facts: compiler.Facts{Date: "2026-02-03", TimeZone: "Europe/Berlin", OS: "linux"},
		Sections: []phases.MergedSection{
			hook("conventions", phases.StabilityStable, 5, 1500),
			hook("memory_recall", "", 1000+turn, recallChars),
			hook("agents_md", "", 6, agentsChars),
			hook("workspace", "", 3000+turn/5, 600),
			hook("skills_runtime", "", 4000+turn/10, 800),
		},
	}
	switch turn {
	case 20:
		in.Host.RecoveryContinuation = write(7, 200)
	case 35:
		in.Host.RetryInstruction = write(8, 200)
	}
	return in
}

// arrangement is one way of making requests of the same texts.
type arrangement struct {
	name  string
	order compiler.Order
	// plain puts everything into one string, as hosts do that know no sections:
	// with breakpoints behind the tools and the string.
	plain bool
	// behind are the sections that are sent behind the conversation.
	behind []string
	// beats is the arrangement that this one is to be better than.
	beats string
}

// arrangements come after those that they beat. Which of the last two is the better
// one depends on how often the sections change: what stands behind the conversation
// is new to the provider in each request.
func arrangements() []arrangement {
	return []arrangement{
		{name: "plain", order: compiler.OrderReference, plain: true},
		{name: "reference", order: compiler.OrderReference, beats: "plain"},
		{name: "cache", order: compiler.OrderCache, beats: "reference"},
		{name: "cache_recall_behind", order: compiler.OrderCache, behind: []string{"memory_recall"}, beats: "cache"},
		{name: "cache_changing_behind", order: compiler.OrderCache, beats: "cache", behind: []string{
			"memory_recall", "workspace", "skills_runtime", "dynamic_context", "recovery_continuation", "retry_instruction",
		}},
	}
}

// step is one request of a session, and what the compiler said of its prompt.
type step struct {
	request   providers.Request
	predicted *int
}

// length is how long a session is: its turns, and the requests of each, of which all
// but the last one lead to a call of a tool.
type length struct{ turns, rounds int }

// session compiles all prompts and makes their requests.
func session(t testing.TB, a arrangement, l length, model string, rules *compiler.CacheRules, count func(string) int) []step {
	t.Helper()
	var out []step
	var previous *compiler.Previous
	var past []history.Entry
	for turn := range l.turns {
		said := []history.Entry{{Role: history.RoleUser, Text: write(uint64(6000+turn), 300)}}
		for round := range l.rounds {
			in := input(turn, a.order)
			in.Previous, in.CacheRules, in.CountTokens = previous, rules, count
			done, err := compiler.Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			m := done.Manifest()
			previous = &compiler.Previous{Outline: m.Outline(), Age: pause, SameSession: true}
			r := request(t, a, done, past, said, count)
			r.Model = model
			out = append(out, step{request: r, predicted: done.Cache.Predicted})
			said = append(slices.Clip(said), reply(turn, round, round < l.rounds-1)...)
		}
		past = append(past, said...)
	}
	return out
}

// reply is what the model says to a request: a call, with what came of it, or the
// turn's answer.
func reply(turn, round int, calls bool) []history.Entry {
	if !calls {
		return []history.Entry{{Role: history.RoleAssistant, Text: write(uint64(7000+turn), 900)}}
	}
	id := fmt.Sprintf("call-%d-%d", turn, round)
	return []history.Entry{
		{Role: history.RoleAssistant, Calls: []history.Call{{ID: id, Tool: "tool_01", Arguments: json.RawMessage(`{"path":"go.mod"}`)}}},
		{Role: history.RoleTool, Results: []history.Result{{CallID: id, Text: write(uint64(8000+10*turn+round), 600)}}},
	}
}

func request(t testing.TB, a arrangement, done compiler.Output, past, said []history.Entry, count func(string) int) providers.Request {
	t.Helper()
	r := providers.Request{
		MaxTokens: 1024, Prompt: done.Prompt, Sections: done.Sections, AfterConversation: a.behind, Turn: said,
	}
	for _, tool := range done.Offered {
		r.Tools = append(r.Tools, tool.Definition)
	}
	if a.plain {
		r.Prompt = plain(r.Prompt)
	}
	var err error
	r.History, err = history.Select(history.Input{Entries: past, Fixed: []string{r.Prompt.FullText}, Tools: r.Tools, Turn: r.Turn},
		history.Settings{ContextTokens: 200_000, ReserveTokens: 8_000, MaxEntries: 1000}, count)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.History.Entries) != len(past) || len(r.Tools) != 12 {
		t.Fatalf("%d of %d entries and %d tools", len(r.History.Entries), len(past), len(r.Tools))
	}
	return r
}

// plain is a prompt in one piece.
func plain(p compiler.Prompt) compiler.Prompt {
	p.StableText, p.DynamicText = p.FullText, ""
	p.CachePlan.Breakpoints = []manifest.Breakpoint{{After: manifest.AfterTools}, {After: manifest.AfterStable}}
	return p
}
