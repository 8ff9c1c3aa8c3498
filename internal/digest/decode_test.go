package digest_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// written has the kinds of fields that are read directly, and of those that are not.
type written struct {
	ref
	*Other
	Inner  inner           `json:"inner"`
	Inners []inner         `json:"inners"`
	Texts  []string        `json:"texts,omitempty"`
	Count  *int            `json:"count"`
	Maybe  *inner          `json:"maybe,omitempty"`
	Byte   uint8           `json:"byte"`
	Small  int16           `json:"small,omitempty"`
	Exact  int64           `json:"exact"`
	Big    uint64          `json:"big"`
	Weight float64         `json:"weight"`
	Share  float32         `json:"share"`
	Done   bool            `json:"done,omitempty"`
	At     time.Time       `json:"at"`
	Until  time.Time       `json:"until,omitzero"`
	Raw    json.RawMessage `json:"raw"`
	Some   json.RawMessage `json:"some,omitempty"`
	Number json.Number     `json:"number"`
	Hash   []byte          `json:"hash"`
	Frame  [2]string       `json:"frame"`
	Free   any             `json:"free"`
	Addr   netip.Addr      `json:"addr"`
	Texted map[string]int  `json:"é"`
}

// inner is read directly as a whole.
type inner struct {
	ref
	Chars int       `json:"chars"`
	Share float64   `json:"share,omitempty"`
	Refs  []ref     `json:"refs"`
	At    time.Time `json:"at,omitzero"`
}

func (s source) inner() inner {
	i := inner{ref: ref{s.text(), s.text(), s.text()}, Chars: s.IntN(2000) - 1000, Share: s.number()}
	if s.IntN(2) == 0 {
		i.At = time.Unix(int64(s.Uint32()), int64(s.IntN(1e9))).In(time.FixedZone("", 60*s.IntN(700)))
		i.Refs = []ref{}
	}
	for range s.IntN(6) {
		i.Refs = append(i.Refs, ref{Kind: s.text(), ID: s.text()})
	}
	return i
}

func (s source) written() written {
	w := written{
		ref: ref{ID: s.text()}, Inner: s.inner(), Byte: uint8(s.IntN(256)), Small: int16(s.IntN(3)), Exact: int64(s.Uint64() >> s.IntN(64)),
		Big: s.Uint64() >> s.IntN(64), Weight: s.number(), Share: float32(s.NormFloat64()), Done: s.IntN(2) == 0, At: time.Unix(0, s.Int64()).UTC(),
		Number: "17", Frame: [2]string{s.text(), ""}, Free: s.free(2), Addr: netip.AddrFrom4([4]byte{10, byte(s.IntN(256))}),
	}
	if s.IntN(2) == 0 {
		w.Other, w.Count, w.Hash, w.Texted = &Other{s.IntN(2), 1}, new(s.IntN(2)), []byte(s.text()), map[string]int{s.text(): 1}
		maybe := s.inner()
		w.Maybe, w.Until = &maybe, time.Unix(1, 0).UTC()
		w.Raw, _ = json.Marshal(s.free(3))   //nolint:errchkjson // values that JSON has
		w.Some, _ = json.Marshal(s.number()) //nolint:errchkjson // the same
	}
	for range s.IntN(6) {
		w.Inners, w.Texts = append(w.Inners, s.inner()), append(w.Texts, s.text())
	}
	return w
}

// decodeAndCompare decodes data and compares with what the contract says: encoding/json and the encoder define it. It
// reports whether data was taken.
func decodeAndCompare[T any](t *testing.T, data []byte) bool {
	t.Helper()
	var got, want T
	again, err := []byte(nil), json.Unmarshal(data, &want)
	if err == nil {
		again, err = digest.EncoderOf[T]().Append(nil, &want)
	}
	canonical := err == nil && string(again) == string(data)
	ok := digest.DecoderOf[T]().Decode(data, &got)
	if ok != canonical {
		t.Fatalf("%q is taken: %t, want %t", data, ok, canonical)
	}
	if !ok {
		return false
	}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(written{}, inner{}, ref{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Fatalf("%q got/want:\n%s", data, diff)
	}
	return true
}

func TestDecodeEqualsReference(t *testing.T) {
	t.Parallel()
	src := source{rand.New(rand.NewPCG(11, 12))}
	enc, direct := digest.EncoderOf[written](), digest.EncoderOf[inner]()
	taken, mutants := 0, 0
	for range 400 {
		w, i := src.written(), src.inner()
		data, err := enc.Append(nil, &w)
		if err != nil {
			t.Fatal(err)
		}
		if decodeAndCompare[written](t, data) {
			taken++
		}
		if data, err = direct.Append(nil, &i); err != nil {
			t.Fatal(err)
		}
		if !decodeAndCompare[inner](t, data) {
			t.Fatalf("what the encoder wrote is not taken: %q", data)
		}
		for range 50 {
			if decodeAndCompare[inner](t, src.mutant(data)) {
				mutants++
			}
		}
	}
	// An integer beyond 2^53 is rounded, perhaps to one that the type does not have.
	if taken < 390 || mutants < 100 {
		t.Errorf("%d values and %d mutants were taken, too few to compare anything", taken, mutants)
	}
}

// mutant returns data with one change.
func (s source) mutant(data []byte) []byte {
	changes := []string{
		"", " ", "0", "-0", "9007199254740993", "1e3", "1.0", "0.1", "null", "{}", "[]", `""`, ",", ":", `"`, `\`, `\n`, `\u000a`, `\u0007`, `\u001F`,
		`\u001f`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud800`, "\n", "\x00", "\xff", "é", "true", `"id":""`, `"label":"","`, `"share":0,`, "}", "]", "T", "+00:00", "Z",
	}
	from := s.IntN(len(data))
	to := min(from+s.IntN(4), len(data))
	return slices.Concat(data[:from], []byte(changes[s.IntN(len(changes))]), data[to:])
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const rest = `"refs":[]}`
	const head = `{"chars":1,"id":"","kind":"",`
	tests := []struct {
		name, in string
		want     bool
	}{
		{"canonical", head + rest, true},
		{"a null list", head + `"refs":null}`, true},
		{"an omitted field", `{"chars":1,"id":"","kind":"","label":"x",` + rest, true},
		{"an omitted field that is empty", `{"chars":1,"id":"","kind":"","label":"",` + rest, false},
		{"an omitted time that is zero", `{"at":"0001-01-01T00:00:00Z","chars":1,"id":"","kind":"",` + rest, false},
		{"a member is missing", `{"chars":1,"id":"",` + rest, false},
		{"an unknown member", `{"b":1,"chars":1,"id":"","kind":"",` + rest, false},
		{"a member twice", `{"chars":1,"chars":1,"id":"","kind":"",` + rest, false},
		{"another order", `{"id":"","chars":1,"kind":"",` + rest, false},
		{"another case", `{"Chars":1,"id":"","kind":"",` + rest, false},
		{"a blank", `{"chars": 1,"id":"","kind":"",` + rest, false},
		{"a line behind it", head + rest + "\n", false},
		{"null", "null", false},
		{"nothing", "", false},
		{"cut off", head + `"refs":[`, false},
		{"cut off in a string", `{"chars":1,"id":"abc`, false},
		{"cut off in an escape", `{"chars":1,"id":"abc\`, false},
		{"cut off in digits", `{"chars":1,"id":"abc\u00`, false},
		{"escapes", `{"chars":1,"id":"\"\\\b\t\n\f\r\u0000\u000b\u001f\u0007/` + "\x7f\u2028" + `","kind":"",` + rest, true},
		{"an escape with a shorter form", `{"chars":1,"id":"\u000a","kind":"",` + rest, false},
		{"an escape that is not needed", `{"chars":1,"id":"\u0041","kind":"",` + rest, false},
		{"an escape that JSON does not have", `{"chars":1,"id":"\_","kind":"",` + rest, false},
		{"a control character", "{\"chars\":1,\"id\":\"long enough\n\",\"kind\":\"\"," + rest, false},
		{"a control character behind an escape", "{\"chars\":1,\"id\":\"\\n\n\",\"kind\":\"\"," + rest, false},
		{"invalid UTF-8", "{\"chars\":1,\"id\":\"\xff\",\"kind\":\"\"," + rest, false},
		{"a surrogate", `{"chars":1,"id":"\ud83d\ude00","kind":"",` + rest, false},
		{"the largest exact integer", `{"chars":9007199254740992,"id":"","kind":"",` + rest, true},
		{"an integer that is rounded", `{"chars":9007199254740993,"id":"","kind":"",` + rest, false},
		{"an integer that the type does not have", `{"chars":9223372036854776000,"id":"","kind":"",` + rest, false},
		{"negative zero", `{"chars":-0,"id":"","kind":"",` + rest, false},
		{"a leading zero", `{"chars":01,"id":"","kind":"",` + rest, false},
		{"an exponent", head + `"refs":[],"share":1e+21}`, true},
		{"a fraction that is zero", head + `"refs":[],"share":1.0}`, false},
		{"an infinity", head + `"refs":[],"share":1e999}`, false},
		{"a time of a zone", `{"at":"2026-01-02T03:04:05.6+02:00","chars":1,"id":"","kind":"",` + rest, true},
		{"a time with zeros behind", `{"at":"2026-01-02T03:04:05.60Z","chars":1,"id":"","kind":"",` + rest, false},
		{"a time that is cut off", `{"at":"2026`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := decodeAndCompare[inner](t, []byte(tt.in)); got != tt.want {
				t.Errorf("taken: %t, want %t", got, tt.want)
			}
		})
	}
}

// Texts of each length with each kind of character: strings are read eight bytes at a time.
func TestDecodeStrings(t *testing.T) {
	t.Parallel()
	for c := range rune(0x100) {
		for _, n := range []int{0, 1, 7, 8, 9, 19, 32, 38} {
			text := strings.Repeat("x", n) + string(c) + strings.Repeat("y", n)
			data, err := digest.AppendString(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			if !decodeAndCompare[string](t, data) {
				t.Errorf("%q is not taken", data)
			}
			decodeAndCompare[string](t, []byte(`"`+text+`"`))
		}
	}
}

func TestDecodeNumbers(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"0", "-1", "127", "128", "-128", "-129", "255", "256", "65535", "999999999999999", "1000000000000000", "9007199254740992", "9007199254740994",
		"9223372036854775807", "-9223372036854776000", "18446744073709552000", "1.5", "-0", "", "-", "1-", "1e21", "1e+21", "1E+21", "0.000001", "1e-7", "+1", "0x1", "1_0",
	} {
		data := []byte(s)
		decodeAndCompare[int8](t, data)
		decodeAndCompare[int64](t, data)
		decodeAndCompare[uint8](t, data)
		decodeAndCompare[uint64](t, data)
		decodeAndCompare[float64](t, data)
		decodeAndCompare[float32](t, data)
	}
}

// Types whose own form is not that of their kind, as values and behind pointers.
func TestDecodeOwnForms(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`null`, `"x"`, `"level x"`, `3`, `"grade 3"`, `{"a":1,"b":2}`, `[1]`, `{}`, `true`, `[{"a":1,"b":2},null]`, `{"x":null}`} {
		data := []byte(s)
		decodeAndCompare[level](t, data)
		decodeAndCompare[grade](t, data)
		decodeAndCompare[*pair](t, data)
		decodeAndCompare[[]*pair](t, data)
		decodeAndCompare[any](t, data)
		decodeAndCompare[map[string]*int](t, data)
		decodeAndCompare[json.RawMessage](t, data)
		decodeAndCompare[*json.RawMessage](t, data)
		decodeAndCompare[[]int](t, data)
		decodeAndCompare[bool](t, data)
		decodeAndCompare[[]byte](t, data)
		decodeAndCompare[netip.Addr](t, data)
	}
}

func FuzzDecode(f *testing.F) {
	src := source{rand.New(rand.NewPCG(13, 14))}
	enc, direct := digest.EncoderOf[written](), digest.EncoderOf[inner]()
	for range 20 {
		w, i := src.written(), src.inner()
		whole, err := enc.Append(nil, &w)
		if err != nil {
			f.Fatal(err)
		}
		part, err := direct.Append(nil, &i)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		f.Add(part)
		f.Add(src.mutant(part))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decodeAndCompare[written](t, data)
		decodeAndCompare[inner](t, data)
		decodeAndCompare[json.RawMessage](t, data)
	})
}

func BenchmarkDecode(b *testing.B) {
	i := source{rand.New(rand.NewPCG(15, 16))}.inner()
	data, err := digest.EncoderOf[inner]().Append(nil, &i)
	if err != nil {
		b.Fatal(err)
	}
	dec := digest.DecoderOf[inner]()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var v inner
		if !dec.Decode(data, &v) {
			b.Fatal("not taken")
		}
	}
}
