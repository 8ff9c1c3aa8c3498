package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// TestFillLog makes a large log to measure with: GRAPNEL_LOG is its DSN, GRAPNEL_LOG_RECORDS how many records it gets. A
// tenth of them are in the thread "long" and 550 in the thread "middle", both of the workspace "w0"; the others are
// in threads of 100. The same numbers give the same log.
//
//	GRAPNEL_LOG=sqlite:big.db GRAPNEL_LOG_RECORDS=1000000 go test ./internal/tests/bench -run TestFillLog -timeout 2h -v
func TestFillLog(t *testing.T) {
	dsn := os.Getenv("GRAPNEL_LOG")
	if dsn == "" {
		t.Skip("set GRAPNEL_LOG to the DSN of the log, and GRAPNEL_LOG_RECORDS to how many records it gets")
	}
	records, err := strconv.Atoi(os.Getenv("GRAPNEL_LOG_RECORDS"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), dsn, store.Options{Synchronous: store.SynchronousNormal})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f := filler{known: map[string]string{}, random: rand.New(rand.NewPCG(1, 2)), entropy: ulid.Monotonic(rand.NewChaCha8([32]byte{}), 0)}
	for n := range records {
		m, texts := f.next(n, records)
		if err := s.Append(t.Context(), m, texts); err != nil {
			t.Fatal(err)
		}
		if n%5 == 0 {
			u := manifest.Usage{ManifestID: m.ManifestID, Rounds: 1, ReportedAt: m.CreatedAt, Usage: phases.Usage{InputTokens: 9000, CacheReadTokens: f.random.IntN(8000)}}
			if err := s.Report(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		if n%100_000 == 99_999 {
			t.Logf("%d records after %s", n+1, time.Since(began).Round(time.Second))
		}
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

type filler struct {
	random  *rand.Rand
	entropy ulid.MonotonicReader
	known   map[string]string
}

// fillStart is when the first record was made; the others follow by 10 seconds.
func fillStart() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// place is the workspace and thread of record n, and the record's number in the thread.
func (f *filler) place(n, records int) (workspace, thread string, turn int) {
	switch {
	case n%10 == 9:
		return "w0", "long", n / 10
	case n%10 == 8 && n/10 >= (records/10-550) && n/10 < records/10:
		return "w0", "middle", n/10 - (records/10 - 550)
	}
	const width = 400 // so many threads are used by turns
	thread = fmt.Sprintf("thread-%d-%d", n/(100*width), n%width)
	return fmt.Sprintf("w%d", n%40), thread, n / width % 100
}

// next returns record n, an ordinary turn of 10 sections, 8 hooks and 10 tools, and its texts.
func (f *filler) next(n, records int) (*manifest.Manifest, []manifest.Text) {
	workspace, thread, turn := f.place(n, records)
	m := manifest.New()
	m.CreatedAt = fillStart().Add(time.Duration(n) * 10 * time.Second)
	m.ManifestID = ulid.MustNew(ulid.Timestamp(m.CreatedAt), f.entropy).String()
	m.CompilerVersion, m.Build, m.ConfigHash = "1", "v1.0.0 4a5c0e3b", sum("configuration")
	m.WorkspaceID, m.ThreadID, m.TurnID, m.SessionID = workspace, thread, fmt.Sprintf("turn-%d", turn), "session-"+thread
	m.Actor, m.AgentID, m.Mode, m.Generation = fmt.Sprintf("person-%d@example.com", n%200), "assistant", phases.ModeAgent, 1
	texts := f.sections(&m, turn)
	for i := range 8 {
		f.hook(&m, i, turn)
	}
	for i := range 5 {
		m.Plugins = append(m.Plugins, phases.PluginRow{
			Plugin: fmt.Sprintf("plugin-%d", i), Version: "1.2.3", SHA256: sum("program", i)[len("sha256:"):], GrantHash: sum("grant", i), State: phases.PluginReady, Tier: "T0",
		})
	}
	for i := range 10 {
		m.Tools = append(m.Tools, manifest.Tool{Name: fmt.Sprintf("tool_%02d", i), Owner: fmt.Sprintf("plugin-%d", i%5), Hash: sum("tool", i)})
	}
	m.History = &manifest.History{Entries: 2*turn + 1, Hash: sum(thread, turn)}
	m.Cache.Provider, m.Cache.Model = "anthropic", "claude-sonnet-4-5"
	m.Cache.Rules = &manifest.CacheRules{MinimumTokens: 1024, LifetimeS: 300, Step: 1, Explicit: true}
	var whole strings.Builder
	for _, text := range texts {
		whole.WriteString(text.Text)
	}
	m.FingerprintFull, m.HashFull = manifest.Fingerprint(whole.String(), nil), manifest.Hash(whole.String(), nil)
	m.FingerprintStable, m.HashStable = manifest.Fingerprint(workspace, nil), manifest.Hash(workspace, nil)
	m.FingerprintTools, m.HashTools = manifest.Fingerprint("tools", nil), manifest.Hash("tools", nil)
	m.FingerprintDynamic, m.HashDynamic = manifest.Fingerprint(texts[9].Text, nil), texts[9].Hash
	m.FingerprintDynamicWithoutExtraSystem, m.HashDynamicWithoutExtraSystem = m.FingerprintDynamic, m.HashDynamic
	return &m, texts
}

// sections adds 10 sections: 8 of the workspace, one of the thread, and one of the turn.
func (f *filler) sections(m *manifest.Manifest, turn int) []manifest.Text {
	var texts []manifest.Text
	for i := range 10 {
		seed := fmt.Sprint(m.WorkspaceID, i)
		switch i {
		case 8:
			seed = m.ThreadID
		case 9:
			seed = fmt.Sprint(m.ThreadID, turn)
		}
		text := f.words(seed, 40+100*(i%3))
		hash := manifest.Hash(text, nil)
		texts = append(texts, manifest.Text{Hash: hash, Text: text})
		tokens := len(text) / 4
		owner := fmt.Sprintf("plugin-%d", i%5)
		m.Sections = append(m.Sections, manifest.Section{
			SectionID: fmt.Sprintf("section_%d", i), Title: fmt.Sprintf("Section %d", i), Stability: phases.StabilityDynamic,
			Placement: phases.PlacementSystem, Owner: owner, Position: i, Chars: len(text), OriginalChars: len(text),
			Tokens: &tokens, Tokenizer: "cl100k_base", Fingerprint: manifest.Fingerprint(text, nil), Hash: hash,
			SourceRefs: []phases.SourceRef{{Kind: "file", ID: "AGENTS.md", Label: "AGENTS.md"}},
			ContentMap: []manifest.Span{{Length: len(text), Owner: owner, ContributionID: owner + ".hook#0"}},
		})
	}
	return texts
}

func (f *filler) hook(m *manifest.Manifest, i, turn int) {
	plugin := fmt.Sprintf("plugin-%d", i%5)
	contribution := sum(m.WorkspaceID, i)
	if i > 5 {
		contribution = sum(m.ThreadID, turn, i)
	}
	m.Runs = append(m.Runs, phases.Run{
		Subscription: plugin + ".hook", Hook: "hook", Plugin: plugin, PluginVersion: "1.2.3",
		Generation: 1, Incarnation: 1, Phase: phases.PrePromptCompile, Stage: phases.RoleContribute, State: phases.StateSucceeded,
		Attempts: 1, QueueMS: float64(f.random.IntN(1000)) / 1000, DurationMS: float64(f.random.IntN(9000)) / 1000, BytesIn: 1000 + f.random.IntN(500), BytesOut: 2000 + f.random.IntN(500),
		Contributions: []string{contribution}, Cut: []phases.Cut{},
	})
	m.HookSources = append(m.HookSources, phases.HookSource{
		HookID: "hook", SubscriptionID: plugin + ".hook", ContributionID: plugin + ".hook#0", ContributionHash: contribution,
		ContributionKind: phases.KindPromptSection, SectionID: fmt.Sprintf("section_%d", i), Phase: phases.PrePromptCompile,
		Priority: 100 - i, SourceCount: 1, Truncation: "none", Plugin: plugin, PluginVersion: "1.2.3",
	})
}

func sum(parts ...any) string { return digest.SHA256([]byte(fmt.Sprint(parts...))) }

// words is a text of so many words, drawn by a seed.
func (f *filler) words(seed string, n int) string {
	if text, known := f.known[seed]; known {
		return text
	}
	list := strings.Fields("the a file turn run test answer section note project review build change owner key table prompt person value of in to with and for from is was has will never always only first last")
	var h [32]byte
	copy(h[:], sum(seed)[len("sha256:"):])
	random := rand.New(rand.NewChaCha8(h))
	var b strings.Builder
	for range n {
		b.WriteString(list[random.IntN(len(list))] + " ")
	}
	if len(f.known) > 1e5 {
		clear(f.known)
	}
	f.known[seed] = b.String() + seed
	return f.known[seed]
}

// BenchmarkAppendBesidePrune is how long an append takes while another program prunes the log GRAPNEL_LOG down to 50
// records a thread. The log is smaller afterwards.
func BenchmarkAppendBesidePrune(b *testing.B) {
	dsn := os.Getenv("GRAPNEL_LOG")
	if dsn == "" {
		b.Skip("set GRAPNEL_LOG to the DSN of a log that TestFillLog made")
	}
	var stores [2]*store.Store
	for i := range stores {
		s, err := store.Open(b.Context(), dsn, store.Options{Synchronous: store.SynchronousNormal})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	pruned := make(chan error, 1)
	go func() {
		done, err := stores[1].Prune(b.Context(), store.Retention{Count: 50}, time.Now())
		b.Logf("pruned %+v", done)
		pruned <- err
	}()
	f := filler{known: map[string]string{}, random: rand.New(rand.NewPCG(3, 4)), entropy: ulid.Monotonic(rand.NewChaCha8([32]byte{1}), 0)}
	var took []float64
	for n := 0; ; n++ {
		select {
		case err := <-pruned:
			if err != nil {
				b.Fatal(err)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "median-ms")
			b.ReportMetric(took[len(took)*99/100], "p99-ms")
			b.ReportMetric(took[len(took)-1], "max-ms")
			return
		case <-time.After(20 * time.Millisecond):
		}
		m, texts := f.next(n, 1)
		m.ThreadID = "beside"
		began := time.Now()
		if err := stores[0].Append(b.Context(), m, texts); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
}
