package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// author is a plugin of a world: what it contributes, and where.
type author struct {
	version       string
	priority      int
	notes         string // its own section
	stable        bool
	shared        string // its part of the section "shared"
	own           int    // the contribution's own priority there
	context       string // its part of dynamic_context
	tools         map[string]phases.Tool
	fails, silent bool
	denies        bool
	sectionID     string
}

// world is all that a turn depends on. Changes of it are what the simulated breaks are made of.
type world struct {
	provider, model string
	authors         map[string]*author
	in              runtime.CompileInput
	history         []string
	cut, summarized int
	epoch           int
	profile         phases.Profile
	key             string
	turnTime        time.Duration
	ignorePlan      bool // the host asks for no breakpoint
	forgets         bool // the provider drops everything
	now             time.Time
}

// models are those of the three providers, with caches of every sort.
func models() [][2]string {
	return [][2]string{{compiler.Anthropic, "claude-sonnet-5"}, {compiler.OpenAI, "gpt-5"}, {compiler.Gemini, "gemini-2.5-flash"}}
}

// prose is a text of its own for each seed, of about n tokens.
func prose(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < 4*n; i++ {
		fmt.Fprintf(&b, "%s says %d. ", seed, i)
	}
	return strings.TrimSpace(b.String())
}

func newWorld(i int) *world {
	m := models()[i%3]
	w := &world{provider: m[0], model: m[1], authors: map[string]*author{}, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	for k, name := range []string{"ant", "bee", "cat", "dog", "elk"} {
		w.authors[name] = &author{version: "1.0.0", priority: 90 - 10*k, notes: prose(name+" notes", 1200), sectionID: name + "_notes", stable: name == "elk"}
	}
	for k, name := range []string{"ant", "bee", "cat"} {
		w.authors[name].shared, w.authors[name].context = prose(name+" shared", 120+k), prose(name+" knows", 90+k)
	}
	w.authors["dog"].tools = map[string]phases.Tool{"fetch": tool("fetch", "f"), "look": tool("look", "l"), "sit": tool("sit", "s")}
	w.in.Host = compiler.HostTexts{Identity: prose("identity", 2500), Safety: prose("safety", 1500), DynamicContext: prose("host", 80)}
	w.in.Custom = []compiler.CustomSection{
		{SectionID: "manners", Stability: phases.StabilityStable, Text: prose("manners", 300)},
		{SectionID: "place", Text: prose("place", 250)},
		{SectionID: "mood", Text: prose("mood", 200)},
	}
	w.history = []string{prose("question", 40), prose("answer", 900)}
	return w
}

func tool(name, seed string) phases.Tool {
	return phases.Tool{Name: name, Description: prose(seed, 60), InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.authors)) }

// plugin is an author as a plugin, which reads its texts when it is asked.
func (w *world) plugin(name string) *sdk.Plugin {
	a := w.authors[name]
	p := &sdk.Plugin{Name: name, Version: a.version}
	p.Hooks = []sdk.Hook{{
		Name: "write", Kinds: []phases.Kind{phases.KindPromptSection}, Priority: a.priority,
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			var out []phases.Contribution
			a := w.authors[name]
			if a.fails {
				return nil, errors.New("out of ink")
			}
			if a.notes != "" && !a.silent {
				s := &phases.PromptSection{SectionID: a.sectionID, Content: a.notes}
				if a.stable {
					s.Stability = phases.StabilityStable
				}
				out = append(out, s)
			}
			if a.shared != "" {
				out = append(out, &phases.PromptSection{Common: phases.Common{Priority: a.own, ContributionID: name + "-part"}, SectionID: "shared", Content: a.shared})
			}
			return out, nil
		},
	}, {
		Name: "know", Kinds: []phases.Kind{phases.KindPromptContext}, Priority: a.priority,
		PrePromptContext: func(context.Context, *sdk.Call, *phases.PrePromptContextInput) ([]phases.Contribution, error) {
			if a := w.authors[name]; a.context != "" {
				return sdk.Reply(&phases.PromptContext{Content: a.context})
			}
			return nil, nil
		},
	}, {
		Name: "equip", Kinds: []phases.Kind{phases.KindToolBundle},
		PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
			b := &phases.ToolBundle{BundleID: "kit"}
			for _, id := range slices.Sorted(maps.Keys(w.authors[name].tools)) {
				b.Tools = append(b.Tools, w.authors[name].tools[id])
			}
			if len(b.Tools) == 0 {
				return nil, nil
			}
			return sdk.Reply(b)
		},
	}, {
		Name: "judge", Kinds: []phases.Kind{phases.KindDecision},
		PostPromptCompile: func(context.Context, *sdk.Call, *phases.PostPromptCompileInput) ([]phases.Contribution, error) {
			if w.authors[name].denies {
				return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny})
			}
			return nil, nil
		},
	}}
	return p
}

// log is a sink in memory. It keeps outlines as a store does.
type log struct {
	records []*manifest.Manifest
	usages  map[string]*manifest.Usage
}

func (l *log) Append(_ context.Context, m *manifest.Manifest, _ []manifest.Text) error {
	var last *manifest.Link
	if n := len(l.records); n > 0 {
		last = new(l.records[n-1].Link())
	}
	l.records = append(l.records, m)
	return manifest.Seal(m, last, nil)
}

func (l *log) Last(context.Context, string, string) (*manifest.Manifest, error) {
	for _, m := range slices.Backward(l.records) {
		if m.Sent() {
			return m, nil
		}
	}
	return nil, nil
}

func (l *log) Report(_ context.Context, u manifest.Usage) error {
	l.usages[u.ManifestID] = &u
	return nil
}

// Shared is true: several engines use one log.
func (*log) Shared() bool { return true }

func (l *log) entries(yield func(manifest.Entry, error) bool) {
	for _, m := range l.records {
		o := m.Outline()
		o, err := manifest.ParseOutline(o.Append(nil))
		if !yield(manifest.Entry{Outline: o, Usage: l.usages[m.ManifestID]}, err) {
			return
		}
	}
}

// thread is one thread in a world: engines, the log, and what the provider's cache does.
type thread struct {
	t      testing.TB
	w      *world
	log    log
	engine *runtime.Engine
	// usage says that the host reports it.
	usage bool
	// whole is the provider's cache; prompts is one that sees no conversation, for predictions.
	whole, prompts map[string]*providerCache
	turns          int
}

func newThread(t testing.TB, w *world, usage bool) *thread {
	return &thread{t: t, w: w, usage: usage, log: log{usages: map[string]*manifest.Usage{}}, whole: map[string]*providerCache{}, prompts: map[string]*providerCache{}}
}

// restart starts an engine for the world as it is now.
func (th *thread) restart() {
	th.stop()
	w, all := th.w, []string{"*"}
	cfg := config.Config{Version: 1}
	cfg.Manifest.FingerprintKey.Value = w.key
	cfg.Budgets.Turn.Time = phases.Duration(w.turnTime)
	facts, err := compiler.LoadCacheFacts()
	if err != nil {
		th.t.Fatal(err)
	}
	o := runtime.Options{
		InProcess: map[string]runtime.Plugin{}, Sink: &th.log, Now: func() time.Time { return w.now }, CountTokens: count, TokenizerName: "quarters",
		CacheRules: func(provider, model string) (compiler.CacheRules, bool) { return facts.Rules(provider, model) },
	}
	for _, name := range w.names() {
		g := phases.Grants{Contribute: all, Sections: []string{name + "_*"}, StableSections: []string{name + "_*"}, Tools: all, See: all, Join: []string{"shared"}}
		if name == "ant" {
			g.Sections = append(g.Sections, "shared")
		}
		cfg.Plugins = append(cfg.Plugins, config.Plugin{Name: name, Grants: g})
		o.InProcess[name] = w.plugin(name)
	}
	if th.engine, err = runtime.New(context.Background(), &cfg, o); err != nil {
		th.t.Fatal(err)
	}
}

func (th *thread) stop() {
	if th.engine != nil {
		if err := th.engine.Close(context.Background()); err != nil {
			th.t.Error(err)
		}
	}
}

// turn compiles a prompt, sends it to the simulated provider, and reports what that says. It returns what was
// predicted of the prompt and what a cache would have served of it; -1 without a prediction.
func (th *thread) turn() (predicted, served int) {
	w := th.w
	th.turns++
	in := w.in
	in.Provider, in.Model, in.ToolCalling, in.Facts.Date = w.provider, w.model, true, "2026-03-04"
	sum := manifest.Fingerprint(strings.Join(w.history, "\n"), nil)
	in.History = &manifest.History{Entries: len(w.history), Hash: sum, Cut: w.cut, Summarized: w.summarized}
	where := phases.Context{WorkspaceID: "w", ThreadID: "t", SessionID: "s", TurnID: strconv.Itoa(th.turns), Epoch: w.epoch, Profile: w.profile, Now: w.now}
	done, err := th.engine.CompileTurn(context.Background(), where, in)
	if err != nil {
		if done == nil || done.Error == nil {
			th.t.Fatal(err)
		}
		return -1, 0 // blocked
	}
	r := requestOf(done, w)
	if th.prompts[w.model] == nil {
		th.whole[w.model], th.prompts[w.model] = newProviderCache(w.provider, w.model), newProviderCache(w.provider, w.model)
	}
	if w.forgets {
		th.whole[w.model] = newProviderCache(w.provider, w.model)
	}
	served = th.prompts[w.model].serve(w.now, r).CacheReadTokens
	u := th.whole[w.model].serve(w.now, r.with(w.history))
	if th.usage {
		report := manifest.Usage{ManifestID: done.Manifest.ManifestID, Rounds: 1, ReportedAt: w.now, Usage: u}
		if err := th.engine.ReportUsage(context.Background(), report); err != nil {
			th.t.Fatal(err)
		}
	}
	w.history = append(slices.Clip(w.history), prose(fmt.Sprint("question ", th.turns), 40), prose(fmt.Sprint("answer ", th.turns), 100))
	w.now = w.now.Add(20 * time.Second)
	predicted = -1
	if p := done.Manifest.Cache.Predicted; p != nil {
		predicted = *p
	}
	return predicted, served
}

// settle makes the world as it is the usual one.
func (th *thread) settle() {
	for range 2 {
		th.turn()
	}
}

// TestSimulatedBreaks changes worlds in 46 ways, two variants each (six with GRAPNEL_LONG=1), over three providers, with and without usage, and
// asks who broke the cache. Predictions are compared with a simulation of the providers' caches.
func TestSimulatedBreaks(t *testing.T) {
	t.Parallel()

	variants := 2
	if os.Getenv("GRAPNEL_LONG") != "" {
		variants = 6
	}
	kinds := breakKinds()
	if len(kinds) != 46 {
		t.Errorf("there are %d kinds", len(kinds))
	}
	right, near, predictions := 0, 0, 0
	t.Logf("%-40s %7s %12s", "what changed", "blamed", "predicted")
	for _, kind := range kinds {
		blamed, good, predicted := 0, 0, 0
		for i := range variants {
			got, want, p, served := simulate(t, kind, i)
			if got.TokensLost = 0; got == want {
				blamed++
			} else {
				t.Logf("%s %d: got %+v, want %+v", kind.name, i, got, want)
			}
			if p < 0 {
				continue
			}
			predicted++
			if max(p-served, served-p)*50 <= served {
				good++
			} else {
				t.Logf("%s %d: predicted %d, served %d", kind.name, i, p, served)
			}
		}
		t.Logf("%-40s %3d / %d %6d / %d", kind.name, blamed, variants, good, predicted)
		right, near, predictions = right+blamed, near+good, predictions+predicted
	}
	all := len(kinds) * variants
	t.Logf("%-40s %3d / %d %4d / %d", "all", right, all, near, predictions)
	if right*100 < all*98 || near*100 < predictions*95 {
		t.Errorf("%d of %d breaks are blamed right, %d of %d predictions are within 2 %%", right, all, near, predictions)
	}
}

// simulate runs one variant: a settled thread, the change, and the turn that is judged.
func simulate(t *testing.T, kind breakKind, i int) (got, want manifest.Break, predicted, served int) {
	t.Helper()
	w := newWorld(i)
	if kind.explicit {
		w.provider, w.model = models()[0][0], models()[0][1]
	}
	th := newThread(t, w, kind.reported || i >= 3)
	th.restart()
	defer th.stop()
	th.settle()
	if i%2 == 1 {
		th.restart()
	}
	want = kind.change(th, w, i)
	predicted, served = th.turn()
	for row, err := range manifest.Blame(th.log.entries) {
		if err != nil {
			t.Fatal(err)
		}
		got = row.Break
	}
	return got, want, predicted, served
}
