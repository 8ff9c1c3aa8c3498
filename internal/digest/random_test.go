package digest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// ref, entry and document resemble a contribution and a manifest.
type ref struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Label string `json:"label,omitempty"`
}

type common struct {
	ContributionID string         `json:"contribution_id"`
	Priority       int            `json:"priority,omitempty"`
	Domain         level          `json:"domain,omitempty"`
	Diagnostics    []string       `json:"diagnostics,omitempty"`
	Extra          map[string]any `json:"extra,omitempty"`
}

type entry struct {
	common
	SectionID  string          `json:"section_id"`
	Title      string          `json:"title"`
	Content    string          `json:"content"`
	MaxChars   *int            `json:"max_chars,omitempty"`
	Sources    []ref           `json:"source_refs"`
	Frame      *[2]string      `json:"frame,omitempty"`
	Input      json.RawMessage `json:"input_schema,omitempty"`
	Attributes map[string]string
	At         time.Time `json:"at,omitzero"`
	Weight     float64   `json:"weight"`
	Share      float32   `json:"share"`
	Big        uint64    `json:"big"`
	Exact      int64     `json:"exact"`
	Grade      grade     `json:"grade"`
	Hash       []byte    `json:"hash"`
}

type document struct {
	Version int               `json:"version"`
	Entries []entry           `json:"entries"`
	ByID    map[string]*entry `json:"by_id,omitempty"`
	Free    any               `json:"free"`
}

// source makes random values whose strings are full of what needs care.
type source struct{ *rand.Rand }

var pieces = []string{
	"a", "words and more words ", "\"", "\\", "\n", "\x00", "\x1f", "\x7f", "<", "&", "é", "漢", "😀", "\u2028", "\ufffd", "\ue000", "\ufeff", "{}", "  ",
}

func (s source) text() string {
	var b strings.Builder
	for range s.IntN(8) {
		b.WriteString(pieces[s.IntN(len(pieces))])
	}
	return b.String()
}

func (s source) number() float64 {
	switch s.IntN(3) {
	case 0:
		return float64(s.IntN(2000)-1000) / 8
	case 1:
		return s.NormFloat64() * math.Pow(10, float64(s.IntN(60)-30))
	}
	for {
		if f := math.Float64frombits(s.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

func (s source) free(depth int) any {
	switch n := s.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return s.IntN(2) == 0
	case n == 2:
		return s.number()
	case n == 3 && depth > 0:
		list := make([]any, s.IntN(4))
		for i := range list {
			list[i] = s.free(depth - 1)
		}
		return list
	case n >= 4 && n < 6 && depth > 0:
		m := make(map[string]any)
		for range s.IntN(4) {
			m[s.text()] = s.free(depth - 1)
		}
		return m
	default:
		return s.text()
	}
}

func (s source) entry() entry {
	e := entry{
		common: common{ContributionID: s.text(), Priority: s.IntN(3), Domain: level(s.text())}, SectionID: s.text(), Title: s.text(),
		Content: strings.Repeat(s.text(), s.IntN(20)), Weight: s.number(), Share: float32(s.NormFloat64()), Big: s.Uint64() >> s.IntN(64),
		Exact: int64(s.Uint64() >> s.IntN(64)), Grade: grade(s.IntN(9)),
	}
	if s.IntN(2) == 0 {
		e.MaxChars, e.Frame = new(s.IntN(100)), &[2]string{s.text(), s.text()}
		e.At = time.Unix(int64(s.Uint32()), int64(s.IntN(1e9))).UTC()
		e.Input, _ = json.MarshalIndent(s.free(3), "", " ") //nolint:errchkjson // values that JSON has
		e.Attributes = map[string]string{s.text(): s.text(), s.text(): s.text()}
		e.Hash = []byte(s.text())
		e.Extra, _ = s.free(3).(map[string]any)
	}
	for range s.IntN(3) {
		e.Sources = append(e.Sources, ref{s.text(), s.text(), s.text()})
		e.Diagnostics = append(e.Diagnostics, s.text())
	}
	return e
}

func (s source) document() document {
	d := document{Version: s.IntN(9), Free: s.free(4), ByID: map[string]*entry{}}
	for range s.IntN(4) {
		d.Entries = append(d.Entries, s.entry())
		e := s.entry()
		d.ByID[s.text()] = &e
	}
	return d
}

func TestAppendEqualsReference(t *testing.T) {
	t.Parallel()
	src := source{rand.New(rand.NewPCG(5, 6))}
	enc := digest.EncoderOf[document]()
	buf := []byte("kept")
	for range 2000 {
		doc := src.document()
		out, err := enc.Append(buf, &doc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := reference(&doc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(out), "kept"+want); diff != "" {
			t.Fatalf("got/want:\n%s", diff)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, p := range pieces {
		f.Add(p, 1.5, int64(3))
	}
	f.Add("\xff", 1e300, int64(math.MaxInt64))
	type value struct {
		S string         `json:"s"`
		M map[string]int `json:"m"`
		F float64        `json:"f"`
		I int64          `json:"i"`
	}
	enc := digest.EncoderOf[value]()
	f.Fuzz(func(t *testing.T, s string, x float64, i int64) {
		v := value{s, map[string]int{s: 1, "m": 2, s + "\uffff": 3, s + "😀": 4}, x, i}
		got, err := enc.Append(nil, &v)
		if !utf8.ValidString(s) || math.IsNaN(x) || math.IsInf(x, 0) {
			if err == nil {
				t.Fatalf("%q, %g accepted as %s", s, x, got)
			}
			return
		}
		want, refErr := reference(&v)
		if err != nil || refErr != nil || string(got) != want {
			t.Fatalf("got %s, %v; want %s, %v", got, err, want, refErr)
		}
	})
}

// One encoder, many goroutines: run with -race.
func TestEncoderIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	enc := digest.EncoderOf[document]()
	doc := source{rand.New(rand.NewPCG(7, 8))}.document()
	want, err := enc.Append(nil, &doc)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := enc.Append(nil, &doc)
				if err != nil || string(got) != string(want) {
					t.Errorf("got %s, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// contribution is a typical one of about 1 KiB.
func contribution() entry {
	return entry{
		common: common{ContributionID: "agentsdoc.prompt#0", Priority: 600}, SectionID: "agents_md", Title: "AGENTS.md",
		Content: strings.Repeat("Run the tests before you commit.\nKeep files small. ", 16), MaxChars: new(16000),
		Sources: []ref{{"file", "AGENTS.md", "root"}, {"file", "pkg/AGENTS.md", ""}}, Frame: &[2]string{"<AGENTS_MD>", "</AGENTS_MD>"},
		Attributes: map[string]string{"type": "agents", "scope": "initial"}, Input: json.RawMessage(`{"type":"object"}`),
		At: time.Unix(1_760_000_000, 0).UTC(), Weight: 0.5,
	}
}

// section has the kinds of fields that are written without encoding/json.
type section struct {
	ref
	Title    string          `json:"title"`
	MaxChars *int            `json:"max_chars,omitempty"`
	Sources  []ref           `json:"source_refs"`
	Schema   json.RawMessage `json:"input_schema,omitempty"`
	At       time.Time       `json:"at,omitzero"`
	Weight   float64         `json:"weight"`
	Big      uint64          `json:"big"`
	Shown    bool            `json:"shown"`
}

func TestAppendAllocatesNothing(t *testing.T) {
	enc := digest.EncoderOf[section]()
	c := contribution()
	e := section{ref{"file", "x", ""}, c.Content, c.MaxChars, c.Sources, c.Input, c.At, c.Weight, 7, true}
	check(t, e, "")
	buf := make([]byte, 0, 4096)
	perValue, perHash := 0.0, 1.0 // the result of a hash
	if raceDetector {
		perValue, perHash = 8, 2 // a sync.Pool then drops some of what it is given
	}
	if got := testing.AllocsPerRun(100, func() {
		if _, err := enc.Append(buf, &e); err != nil {
			t.Error(err)
		}
	}); got > perValue {
		t.Errorf("%v allocations per value, want at most %v", got, perValue)
	}
	if got := testing.AllocsPerRun(100, func() { digest.XXH64(buf[:cap(buf)]) }); got > perHash {
		t.Errorf("%v allocations per hash, want at most %v", got, perHash)
	}
}

func ExampleEncoderOf() {
	type section struct {
		ID    string `json:"id"`
		Chars int    `json:"chars"`
		Owner string `json:"owner,omitempty"`
	}
	enc := digest.EncoderOf[section]() // once for each type, usually a package variable
	out, err := enc.Append(nil, &section{ID: "agents_md", Chars: 15950})
	fmt.Println(string(out), err)
	fmt.Println(digest.XXH64(out))
	// Output:
	// {"chars":15950,"id":"agents_md"} <nil>
	// xxh64:f07878241c81ae02
}

func BenchmarkAppendContribution(b *testing.B) {
	enc := digest.EncoderOf[entry]()
	e := contribution()
	benchmarkAppend(b, enc, &e)
}

// BenchmarkAppendManifest is a manifest of about 15 KB: many small fields.
func BenchmarkAppendManifest(b *testing.B) {
	enc := digest.EncoderOf[document]()
	doc := document{Version: 1}
	for range 30 {
		e := contribution()
		e.Content = "xxh64:0123456789abcdef"
		doc.Entries = append(doc.Entries, e)
	}
	benchmarkAppend(b, enc, &doc)
}

func benchmarkAppend[T any](b *testing.B, enc *digest.Encoder[T], v *T) {
	b.Helper()
	b.ReportAllocs()
	buf, err := enc.Append(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if buf, err = enc.Append(buf[:0], v); err != nil {
			b.Fatal(err)
		}
		_ = digest.XXH64(buf)
	}
}
