package manifest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestEveryFieldIsSealed changes each field of the record, one at a time, and
// wants another hash. It finds the fields by itself, so that a new one cannot
// be forgotten.
func TestEveryFieldIsSealed(t *testing.T) {
	t.Parallel()

	m := sampleManifest(2, 2, 2)
	m.Cache.Plan = CachePlan{Key: "k", Breakpoints: []Breakpoint{{After: AfterStable, SectionID: "section_0"}}}
	m.Cache.Predicted, m.Cache.Actual = new(int), new(int)
	m.Runs[0].Cut = []phases.Cut{{ContributionID: "c", SectionID: "s"}}
	if err := Seal(&m, nil, nil); err != nil {
		t.Fatal(err)
	}
	sealed := m.Hash
	free := []string{"manifest.Integrity.Hash", "manifest.Cache.Actual"}
	eachLeaf("manifest", reflect.ValueOf(&m).Elem(), func(path string) {
		if got, err := RecordHash(&m, nil); err != nil || (got == sealed) != slices.Contains(free, path) {
			t.Errorf("%s: hash is %s, %v after a change, sealed as %s", path, got, err, sealed)
		}
	})
	if got, err := RecordHash(&m, nil); err != nil || got != sealed {
		t.Errorf("the record was not restored: %s, %v", got, err)
	}
}

// TestContentHashCountsEachField has the list of what does not count. Whatever
// is not on it must change the content hash.
func TestContentHashCountsEachField(t *testing.T) {
	t.Parallel()

	free := []string{
		"Head.ManifestID", "Head.Seq", "Head.Round", "Head.RunsBefore", "Head.Generation", "Head.WorkspaceID", "Head.ThreadID", "Head.TurnID",
		"Head.SessionID", "Head.Epoch", "Head.CreatedAt", "Head.Actor", "Head.AgentID", "Head.TaskID", "Head.Mode", "Head.Build", "Head.ConfigHash",
		"Head.TurnEnded", "Head.TextsKept", "Integrity.ContentHash", "Integrity.Prev", "Integrity.Hash",
		"Cache.Plan.Key", "Cache.OfAgent", "Cache.Provider", "Cache.Model", "Cache.ToolTokens", "Cache.Predicted", "Cache.Actual", "Cache.Break.Cause", "Cache.Break.BrokeAt", "Cache.Break.Tool", "Cache.Break.Field", "Cache.Break.Owner",
		"Cache.Break.Because", "Cache.Break.TokensLost", "Head.Blocked",
		"Runs[0].Generation", "Runs[0].Incarnation", "Runs[0].Attempts", "Runs[0].QueueMS", "Runs[0].DurationMS",
		"Runs[0].BytesIn", "Runs[0].BytesOut", "Runs[0].CachedFrom",
		"Runs[0].Usage.InputTokens", "Runs[0].Usage.OutputTokens", "Runs[0].Usage.CacheReadTokens", "Runs[0].Usage.CacheWriteTokens", "HookSources[0].CachedFrom",
		"Plugins[0].Generation", "Plugins[0].Restarts", "Plugins[0].Recycled", "Plugins[0].Message",
		"Plugins[0].TierLacks[0]", "Plugins[0].AbsentPaths[0]",
		"Budgets.Turn.UsedMS", "Budgets.Turn.UsedChars", "Budgets.Phases[0].Budget.UsedMS", "Budgets.Phases[0].Budget.UsedChars",
		"Diagnostics[0].Message", "Calls[0].CallID",
		"Requests[0].ManifestID", "Requests[0].Changes[0].Kind", "Requests[0].Changes[0].ID", "Requests[0].Changes[0].Manifest", "Requests[0].Changes[0].Sent",
		"Requests[0].Omitted",
		"Cache.Rules.MinimumTokens", "Cache.Rules.LifetimeS", "Cache.Rules.Step", "Cache.Rules.Explicit",
	}
	want := map[string]bool{}
	for _, f := range free {
		want["manifest."+f] = true
	}
	m := sampleManifest(1, 1, 1)
	before := contentHash(t, &m)
	eachLeaf("manifest", reflect.ValueOf(&m).Elem(), func(path string) {
		if got := contentHash(t, &m) == before; got != want[path] {
			t.Errorf("%s: free = %v, want %v", path, got, want[path])
		}
		delete(want, path)
	})
	delete(want, "manifest.Cache.Predicted") // nil in the sample
	delete(want, "manifest.Cache.Actual")
	if len(want) > 0 {
		t.Errorf("no such fields: %v", want)
	}
}

// TestContentHashOfCachedAnswers: an answer out of the cache is the same content, and hashing changes no argument.
func TestContentHashOfCachedAnswers(t *testing.T) {
	t.Parallel()

	a, b := sampleManifest(3, 3, 3), sampleManifest(3, 3, 3)
	b.Runs[0].State, b.Runs[0].CachedFrom, b.HookSources[0].CachedFrom = phases.StateCached, "turn-0", "turn-0"
	untouched := mustCanonical(t, &b)
	if contentHash(t, &a) != contentHash(t, &b) {
		t.Error("another content")
	}
	if diff := cmp.Diff(untouched, mustCanonical(t, &b)); diff != "" {
		t.Errorf("ContentHash changed its argument:\n%s", diff)
	}
}

func TestCanonicalRefusesWhatJSONCannotSay(t *testing.T) {
	t.Parallel()

	m := sampleManifest(1, 0, 0)
	m.Sections[0].Title = "\xff"
	if _, err := Canonical(&m); err == nil || !strings.Contains(err.Error(), "title") {
		t.Errorf("Canonical = %v, want an error that names the title", err)
	}
	if err := Seal(&m, nil, nil); err == nil {
		t.Error("Seal took a title that is not UTF-8")
	}
}

// eachLeaf changes each scalar below v in turn, calls check, and restores it.
func eachLeaf(path string, v reflect.Value, check func(path string)) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			change(v, reflect.ValueOf(time.Unix(1, 0).UTC()), path, check)
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" {
				continue // not of the record
			}
			eachLeaf(path+"."+v.Type().Field(i).Name, v.Field(i), check)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			change(v, reflect.ValueOf(json.RawMessage(`{"changed":true}`)), path, check)
			return
		}
		if v.Len() > 0 {
			eachLeaf(path+"[0]", v.Index(0), check)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachLeaf(path, v.Elem(), check)
		}
	case reflect.String:
		change(v, reflect.ValueOf("changed").Convert(v.Type()), path, check)
	case reflect.Bool:
		change(v, reflect.ValueOf(!v.Bool()), path, check)
	default:
		change(v, reflect.ValueOf(77).Convert(v.Type()), path, check)
	}
}

func change(v, to reflect.Value, path string, check func(string)) {
	before := reflect.New(v.Type()).Elem()
	before.Set(v)
	v.Set(to)
	check(path)
	v.Set(before)
}

func contentHash(t *testing.T, m *Manifest) string {
	t.Helper()
	h, err := ContentHash(m)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustCanonical(tb testing.TB, m *Manifest) string {
	tb.Helper()
	b, err := Canonical(m)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// BenchmarkCanonicalHash seals nothing; it is the price of one pass over a busy
// turn's record, beside copying and XXH64-hashing the same bytes once.
func BenchmarkCanonicalHash(b *testing.B) {
	m := sampleManifest(17, 20, 10)
	record := []byte(mustCanonical(b, &m))
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(record)))
		for b.Loop() {
			if _, err := RecordHash(&m, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy+xxh64", func(b *testing.B) {
		b.SetBytes(int64(len(record)))
		for b.Loop() {
			_ = digest.Fingerprint(nil, string(record))
		}
	})
}
