package store_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// epoch is the time of the first sample; the next ones follow by seconds.
func epoch() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC) }

// sampleID returns the id of sample n.
func sampleID(n int) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	id := []byte("01JZ" + strings.Repeat("0", 22))
	for i := len(id) - 1; n > 0; i, n = i-1, n/32 {
		id[i] = digits[n%32]
	}
	return string(id)
}

// sample returns manifest n of a thread, not sealed: an ordinary turn of some 10 sections and 8
// hooks. Samples differ in id, turn and time only.
func sample(workspace, thread string, n int) *manifest.Manifest {
	m := manifest.New()
	m.ManifestID = sampleID(n)
	m.CompilerVersion = "1"
	m.WorkspaceID, m.ThreadID, m.TurnID, m.SessionID = workspace, thread, fmt.Sprintf("turn-%d", n), "s"
	m.CreatedAt = epoch().Add(time.Duration(n) * time.Second)
	f := &m.Fingerprints
	for text, to := range map[string][2]*string{
		"the prompt": {&f.FingerprintFull, &f.HashFull}, "the stable part": {&f.FingerprintStable, &f.HashStable},
		"the dynamic part": {&f.FingerprintDynamic, &f.HashDynamic}, "[]": {&f.FingerprintTools, &f.HashTools},
		"less": {&f.FingerprintDynamicWithoutExtraSystem, &f.HashDynamicWithoutExtraSystem},
	} {
		*to[0], *to[1] = manifest.Fingerprint(text, nil), manifest.Hash(text, nil)
	}
	for i := range 10 {
		m.Sections = append(m.Sections, sampleSection(i))
	}
	for i := range 8 {
		m.Runs = append(m.Runs, sampleRun(i))
		m.HookSources = append(m.HookSources, sampleSource(i))
	}
	for i := range 3 {
		m.Plugins = append(m.Plugins, phases.PluginRow{
			Plugin: fmt.Sprintf("plugin-%d", i), Version: "1.2.3", SHA256: "builtin", State: phases.PluginReady, Tier: "T0",
		})
	}
	m.Complete()
	return &m
}

func sampleSection(i int) manifest.Section {
	tokens := 100 + i
	return manifest.Section{
		SectionID: fmt.Sprintf("section_%d", i), Title: fmt.Sprintf("Section %d — Überblick", i), Stability: phases.StabilityDynamic,
		Placement: phases.PlacementSystem, Owner: phases.OwnerBuiltin, Position: i, Chars: 400, OriginalChars: 400,
		Tokens: &tokens, Tokenizer: "cl100k_base", Fingerprint: manifest.Fingerprint(sectionText(i), nil), Hash: manifest.Hash(sectionText(i), nil),
		SourceRefs: []phases.SourceRef{{Kind: "file", ID: "AGENTS.md", Label: "AGENTS.md"}},
	}
}

// sectionText is the text of a sample's section.
func sectionText(i int) string { return fmt.Sprintf("text of section %d", i) }

func sampleRun(i int) phases.Run {
	return phases.Run{
		Subscription: fmt.Sprintf("plugin-%d.hook", i), Hook: "hook", Plugin: fmt.Sprintf("plugin-%d", i), PluginVersion: "1.2.3",
		Generation: 1, Incarnation: 1, Phase: phases.PrePromptCompile, Stage: phases.RoleContribute, State: phases.StateSucceeded,
		Attempts: 1, QueueMS: 0.25, DurationMS: 1.5, BytesIn: 1000, BytesOut: 2000,
		Contributions: []string{manifest.Hash(fmt.Sprint("contribution", i), nil)}, Cut: []phases.Cut{},
	}
}

func sampleSource(i int) phases.HookSource {
	return phases.HookSource{
		HookID: "hook", SubscriptionID: fmt.Sprintf("plugin-%d.hook", i), ContributionID: fmt.Sprintf("plugin-%d.hook#0", i),
		ContributionHash: manifest.Hash(fmt.Sprint("contribution", i), nil), ContributionKind: phases.KindPromptSection,
		SectionID: fmt.Sprintf("section_%d", i), Phase: phases.PrePromptCompile, Priority: 100 - i, SourceCount: 1, Truncation: "none",
		Plugin: fmt.Sprintf("plugin-%d", i), PluginVersion: "1.2.3",
	}
}
