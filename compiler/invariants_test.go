package compiler

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// checkOutput checks what is true of every output.
func checkOutput(t *testing.T, out *Output) {
	t.Helper()
	p := &out.Prompt
	stableText, dynamicText, split := strings.Cut(p.FullText, between)
	switch {
	case p.StableText != "" && p.DynamicText != "":
		if !split || stableText != p.StableText || dynamicText != p.DynamicText || p.Boundary != Boundary {
			t.Error("the full text cannot be split into its parts")
		}
		if n := strings.Count(p.FullText, Boundary); n != 1 {
			t.Errorf("the boundary is there %d times", n)
		}
	case p.FullText != p.StableText+p.DynamicText || p.Boundary != "":
		t.Error("with one part, the full text is not that part")
	case strings.Contains(p.FullText, Boundary):
		t.Error("a boundary without two parts")
	}
	for _, s := range []string{p.StableText, p.DynamicText} {
		if strings.TrimSpace(s) != s {
			t.Errorf("a part is not trimmed: %.40q", s)
		}
	}
	if !utf8.ValidString(p.FullText) || strings.Contains(p.FullText, "\x00") {
		t.Error("the prompt is not UTF-8 without NUL")
	}
	checkRecord(t, out)
}

// checkRecord validates the output's record and accounts for each section once.
func checkRecord(t *testing.T, out *Output) {
	t.Helper()
	m := sealed(t, out)
	if err := manifest.Validate(&m); err != nil {
		t.Error(err)
	}
	sections, left := map[string]bool{}, map[string]bool{}
	for _, s := range out.Sections {
		sections[s.SectionID] = true
		if s.OriginalChars < s.Chars && s.Truncation == nil {
			t.Errorf("%s: %d of %d chars, with no cut", s.SectionID, s.Chars, s.OriginalChars)
		}
	}
	for _, l := range out.Omitted {
		if left[l.ID] || sections[l.ID] && l.ID != "dynamic_context" {
			t.Errorf("%s is accounted for twice", l.ID)
		}
		left[l.ID] = true
	}
}

// sealed makes a record of an output.
func sealed(t *testing.T, out *Output) manifest.Manifest {
	t.Helper()
	m := out.Manifest()
	m.ManifestID, m.CreatedAt = "01JZ0000000000000000000000", time.Unix(0, 0)
	if err := manifest.Seal(&m, nil, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// randomInput makes a busy input out of nasty pieces of text.
func randomInput(r *rand.Rand) Input {
	in := Input{
		Profile: pick(r, phases.ProfileFull, phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone, ""),
		Order:   pick(r, OrderReference, OrderCache, ""),
		Host: HostTexts{
			Identity: nasty(r), Safety: nasty(r), SoulCore: nasty(r), IdentityCore: nasty(r), UserPersona: nasty(r),
			ToolRecovery: r.IntN(2) == 0, TaskOrchestration: nasty(r), RecoveryContinuation: nasty(r), RetryInstruction: nasty(r),
			DynamicContext: nasty(r),
		},
		ToolCalling: r.IntN(3) > 0,
		Facts:       Facts{Date: "2026-02-03", TimeZone: nasty(r), OS: "linux"},
		Limits: Limits{
			SectionChars: r.IntN(200), TotalChars: r.IntN(400), FileChars: r.IntN(200), FilesChars: r.IntN(300),
		},
	}
	ids := []string{"agents_md", "memory_recall", "skills_runtime", "a", "b", "c", "d", "e"}
	for _, id := range ids {
		in.Sections = append(in.Sections, phases.MergedSection{
			SectionID: id, Title: nasty(r), Stability: pick(r, stable, dynamic, ""), Priority: r.IntN(3), Owner: pick(r, "p", "q"),
			Placement: pick(r, "", phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage), Content: nasty(r),
		})
	}
	for i := range 5 {
		in.Contexts = append(in.Contexts, phases.ContextEntry{ContributionID: strconv.Itoa(i), Content: nasty(r), Render: r.IntN(3) > 0})
		in.Custom = append(in.Custom, CustomSection{
			SectionID: fmt.Sprintf("h%d", i), Title: nasty(r), Text: nasty(r), Stability: pick(r, stable, dynamic, ""),
			Pace: pick(r, "", PaceSession, PaceCall), After: pick(r, "", "identity", "agents_md", "h0", "h1", "h2", "nowhere"),
			Placement: pick(r, "", "", phases.PlacementUserMessage),
		})
		in.Tools = append(in.Tools, phases.MergedTool{Name: fmt.Sprintf("t%d", r.IntN(9)), Owner: "p", Definition: phases.Tool{HiddenDomain: nasty(r)}})
	}
	return in
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// nasty makes a text of pieces that users might write, or no text.
func nasty(r *rand.Rand) string {
	pieces := []string{
		"", " ", "\n", "\n\n", "word", "## Heading", Boundary, Boundary[:10], Boundary[10:], "é", "\r\n", "\x00", "\xff",
		"[truncated: kept 1 of 2 characters]", "  indented", strings.Repeat("long ", 30), "\u2028", `<\!--`,
	}
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(pick(r, pieces...))
	}
	return b.String()
}

func mustCompile(tb testing.TB, in Input) Output {
	tb.Helper()
	out, err := Compile(in)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestRandomInputs(t *testing.T) {
	t.Parallel()

	for seed := range uint64(400) {
		in := randomInput(rand.New(rand.NewPCG(seed, 1)))
		if in.KeepTexts = true; seed%3 == 0 {
			in.FingerprintKey = []byte("key")
		}
		before := fmt.Sprintf("%+v", in)
		out := mustCompile(t, in)
		checkOutput(t, &out)
		checkLimits(t, in.Limits.withDefaults(), &out)
		checkRebuilt(t, &out, in.FingerprintKey)
		if after := fmt.Sprintf("%+v", in); after != before {
			t.Errorf("the input was changed:\n%s", cmp.Diff(before, after))
		}
		shuffled := shuffle(rand.New(rand.NewPCG(seed, 2)), in)
		if diff := cmp.Diff(asJSON(t, mustCompile(t, shuffled)), asJSON(t, out)); diff != "" {
			t.Errorf("another order of the input changes the output:\n%s", diff)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// checkLimits adds up what was cut here.
func checkLimits(t *testing.T, l Limits, out *Output) {
	t.Helper()
	host, files := 0, 0
	for _, s := range out.Sections {
		switch s.SectionID {
		case "soul_core", "identity_core", "user_persona":
			chars := s.Chars
			if s.SectionID != "user_persona" {
				chars -= text.Chars(join+soulNote) + map[string]int{"identity_core": len("IDENTITY") - len("SOUL")}[s.SectionID]
			}
			files += chars
			if chars > l.FileChars {
				t.Errorf("%s: %d chars of a file, limit %d", s.SectionID, chars, l.FileChars)
			}
		default:
			if s.Owner != phases.OwnerHost {
				continue
			}
			host += s.Chars
			if s.Chars > l.SectionChars {
				t.Errorf("%s: %d chars, limit %d", s.SectionID, s.Chars, l.SectionChars)
			}
		}
	}
	if host > l.TotalChars || files > l.FilesChars {
		t.Errorf("%d chars of the host, limit %d; %d of files, limit %d", host, l.TotalChars, files, l.FilesChars)
	}
}

// shuffle reorders what has no order of its own.
func shuffle(r *rand.Rand, in Input) Input {
	in.Sections = append([]phases.MergedSection(nil), in.Sections...)
	in.Tools = append([]phases.MergedTool(nil), in.Tools...)
	in.Custom = append([]CustomSection(nil), in.Custom...)
	r.Shuffle(len(in.Sections), reflect.Swapper(in.Sections))
	r.Shuffle(len(in.Tools), reflect.Swapper(in.Tools))
	r.Shuffle(len(in.Custom), reflect.Swapper(in.Custom))
	return in
}

func asJSON(t *testing.T, out Output) string {
	t.Helper()
	b, err := json.MarshalIndent(out, "", " ") //nolint:musttag // only compared with itself
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFingerprintsAreOfTheText pins what fingerprints cover.
func TestFingerprintsAreOfTheText(t *testing.T) {
	t.Parallel()

	for _, key := range [][]byte{nil, []byte("k")} {
		in := seventeen(300)
		in.FingerprintKey = key
		out := mustCompile(t, in)
		f, h := func(s string) string { return manifest.Fingerprint(s, key) }, func(s string) string { return manifest.Hash(s, key) }
		p := out.Prompt
		last := strings.LastIndex(p.DynamicText, join+"## Extra System")
		want := manifest.Fingerprints{
			FingerprintStable: f(p.StableText), FingerprintDynamic: f(p.DynamicText), FingerprintFull: f(p.FullText),
			FingerprintDynamicWithoutExtraSystem: f(p.DynamicText[:last]), FingerprintTools: f("[]"), FingerprintKeyID: manifest.KeyID(key),
			HashStable: h(p.StableText), HashDynamic: h(p.DynamicText), HashFull: h(p.FullText),
			HashDynamicWithoutExtraSystem: h(p.DynamicText[:last]), HashTools: h("[]"),
		}
		if diff := cmp.Diff(out.Fingerprints, want); diff != "" {
			t.Errorf("key %q (-got +want):\n%s", key, diff)
		}
		if got, want := out.Sections[0].Fingerprint, f("## Identity\n\n"+in.Host.Identity); got != want {
			t.Errorf("key %q: section fingerprint %s, want %s", key, got, want)
		}
		if got, want := out.Sections[0].Hash, h("## Identity\n\n"+in.Host.Identity); got != want {
			t.Errorf("key %q: section hash %s, want %s", key, got, want)
		}
	}
}
