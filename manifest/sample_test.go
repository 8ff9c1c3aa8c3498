package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

const sampleID = "01JZ0000000000000000000000"

// sampleManifest is a complete record of a busy turn, not sealed.
func sampleManifest(sections, runs, plugins int) Manifest {
	m := New()
	m.ManifestID = sampleID
	m.CompilerVersion = "1"
	m.Generation = 3
	m.WorkspaceID, m.ThreadID, m.TurnID, m.SessionID = "w", "t", "turn-1", "s"
	m.CreatedAt = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	setSums(&m, nil)
	for i := range sections {
		m.Sections = append(m.Sections, sampleSection(i))
	}
	for i := range runs {
		m.Runs = append(m.Runs, sampleRun(i))
		m.HookSources = append(m.HookSources, sampleSource(i))
	}
	for i := range plugins {
		m.Plugins = append(m.Plugins, phases.PluginRow{
			Plugin: fmt.Sprintf("plugin-%d", i), Version: "1.2.3", SHA256: "unpinned", State: phases.PluginReady, Generation: 3,
			Tier: "T1", TierLacks: []string{"signals"}, AbsentPaths: []string{"/srv/absent"}, Restarts: i, Message: "back since 4:05",
		})
	}
	m.Audits = []Audit{
		{Phase: phases.PrePolicy, Plugin: "p", PluginVersion: "1", SubscriptionID: "p.h", EventKind: "seen", ContributionHash: Hash("a", nil), Details: json.RawMessage(`{"text":"what was seen"}`), DetailsBytes: 24},
		{Phase: phases.PrePolicy, Plugin: "p", PluginVersion: "1", SubscriptionID: "p.h", EventKind: "hidden", ContributionHash: Hash("b", nil), DetailsHash: Hash("d", nil), DetailsBytes: 9},
	}
	m.HostTools = []HostTool{{Name: "shell", Hash: Hash("shell", nil)}}
	m.History = &History{Entries: 4, Hash: Hash("history", nil), Cut: 2, Summarized: 1, Repaired: 1}
	m.Reminders = []Reminder{{Type: "tool.output", Owner: "p", ContributionID: "c", Fingerprint: Fingerprint("r", nil), Hash: Hash("r", nil), Chars: 9}}
	m.Calls = []Call{{
		Phase: phases.ToolPreCall, CallID: "call-1", Tool: "shell", Owner: phases.OwnerHost, Came: Hash("x", nil), Went: Hash("y", nil),
		Verdict: phases.VerdictAllow, RewrittenBy: []string{"p.r"}, Facts: []string{"hosts"}, FactsHash: Hash("{}", nil),
		DecidedBy: []Decider{{Subscription: "p.h", Verdict: phases.VerdictAllow, ReasonCode: "known", Shadow: true}},
	}}
	m.Requests = []Request{{
		ManifestID: sampleID, Omitted: 1, Changes: []RequestChange{{Kind: RequestToolName, ID: "a.b", Manifest: "a.b", Sent: "a_b"}},
	}}
	m.Erasure = &Erasure{
		By: "dpo", Reason: "asked for", At: m.CreatedAt, WorkspaceID: "w", ThreadID: "t", Actor: "a", Before: m.CreatedAt, Records: 2, Texts: 1,
	}
	m.Cache.Rules = &CacheRules{MinimumTokens: 1024, LifetimeS: 300, Step: 128}
	m.Omitted = []phases.Omitted{{ID: "memory_recall", Owner: "memory", Reason: "profile", Chars: 12}}
	m.Policies = []phases.PolicyEntry{{Domain: "memory", Key: "mode", Value: json.RawMessage(`"off"`), Priority: 5, Owner: "memory.policy"}}
	m.Tools = []Tool{{Name: "read_file", BundleID: "files", Owner: "files", Hash: Hash("tool", nil)}}
	m.Budgets = Budgets{
		Turn:   Budget{GrantedMS: 10_000, UsedMS: 12.5, GrantedChars: 64_000, UsedChars: 900},
		Phases: []PhaseBudget{{Phase: phases.PrePromptCompile, Budget: Budget{GrantedMS: 1000, UsedMS: 1.2}}},
	}
	m.Files = []File{{Path: "SOUL.md", Status: "loaded", Chars: 4}}
	m.Diagnostics = []Diagnostic{{
		Code: "file_truncated", Severity: phases.SeverityWarning, Message: "SOUL.md is too long", SectionID: "section_0", HookSource: "",
	}}
	m.Complete()
	return m
}

// setSums names the texts of the prompt, which has the texts "full", "stable" and so on.
func setSums(m *Manifest, key []byte) {
	f := &m.Fingerprints
	for text, to := range map[string][2]*string{
		"stable": {&f.FingerprintStable, &f.HashStable}, "dynamic": {&f.FingerprintDynamic, &f.HashDynamic},
		"less": {&f.FingerprintDynamicWithoutExtraSystem, &f.HashDynamicWithoutExtraSystem},
		"full": {&f.FingerprintFull, &f.HashFull}, "tools": {&f.FingerprintTools, &f.HashTools},
	} {
		*to[0], *to[1] = Fingerprint(text, key), Hash(text, key)
	}
}

func sampleSection(i int) Section {
	tokens := 10 * i
	s := Section{
		SectionID: fmt.Sprintf("section_%d", i), Title: fmt.Sprintf("Section %d", i), Stability: phases.StabilityDynamic,
		Placement: phases.PlacementSystem, Owner: phases.OwnerBuiltin, Position: i, Chars: 100 + i, OriginalChars: 100 + i,
		Tokens: &tokens, Tokenizer: "cl100k_base", Fingerprint: Fingerprint(strconv.Itoa(i), nil), Hash: Hash(strconv.Itoa(i), nil),
		SourceRefs: []phases.SourceRef{{Kind: "file", ID: "/repo/AGENTS.md", Label: "AGENTS.md"}},
		ContentMap: []Span{{Offset: 0, Length: 100 + i, Owner: phases.OwnerBuiltin, ContributionID: "c"}},
	}
	if i%4 == 0 {
		s.OriginalChars = 200 + i
		s.Truncation = &phases.Truncation{Limit: phases.LimitSection, Original: 200 + i, Kept: 100 + i}
	}
	return s
}

func sampleRun(i int) phases.Run {
	return phases.Run{
		Subscription: fmt.Sprintf("plugin-%d.hook", i), Hook: "hook", Plugin: fmt.Sprintf("plugin-%d", i), PluginVersion: "1.2.3",
		Generation: 3, Incarnation: 2, Phase: phases.PrePromptCompile, Stage: phases.RoleContribute, State: phases.StateSucceeded,
		Attempts: 1, QueueMS: 0.25, DurationMS: 1.5, BytesIn: 1000, BytesOut: 2000, Contributions: []string{Hash(fmt.Sprint("c", i), nil)},
		Cut: []phases.Cut{},
	}
}

func sampleSource(i int) phases.HookSource {
	return phases.HookSource{
		HookID: "hook", SubscriptionID: fmt.Sprintf("plugin-%d.hook", i), ContributionID: fmt.Sprintf("plugin-%d.hook#0", i),
		ContributionHash: Hash(fmt.Sprint("c", i), nil), ContributionKind: phases.KindPromptSection,
		SectionID: fmt.Sprintf("section_%d", i), Phase: phases.PrePromptCompile, Priority: 100 - i, SourceCount: 1, Truncation: "none",
		Plugin: fmt.Sprintf("plugin-%d", i), PluginVersion: "1.2.3",
	}
}
