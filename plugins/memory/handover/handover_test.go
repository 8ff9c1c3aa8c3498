package handover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
)

// parcel is one with everything in it.
func parcel() Parcel {
	return Parcel{
		Items: []Item{
			{ID: "01J8Z", Scope: "user", Category: "preference", Text: "I prefer <tabs>", Score: 1.25},
			{ID: "01J90", Scope: "workspace", Category: "instruction", Text: "Answer in …", Cut: true, Pinned: true},
		},
		Left: 3,
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	want := parcel()
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text, "<\n") {
		t.Errorf("the prompt's rules would change %q", text)
	}
	got, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	s := recall.Selection{Items: []recall.Recalled{{ID: "a", Scope: "user", Category: "fact", Text: "x", Cut: true, Pinned: true, Score: 2}}, Left: 1}
	got := Of(s)
	want := Parcel{Items: []Item{{ID: "a", Scope: "user", Category: "fact", Text: "x", Cut: true, Pinned: true, Score: 2}}, Left: 1}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(got.Recalled(), s.Items); diff != "" {
		t.Errorf("back (-got +want):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	item := `{"id":"a","scope":"user","category":"fact","text":"x","score":1}`
	tests := []struct{ name, content, want string }{
		{"nothing", ``, "EOF"},
		{"no JSON", `I recalled nothing.`, "invalid character"},
		{"cut off", `{"items":[` + item, "EOF"},
		{"two values", `{"items":[]} {}`, "more than one value"},
		{"unknown key", `{"memories":[]}`, "memories"},
		{"too long", `{"items":[{"text":"` + strings.Repeat("x", maxBytes) + `"}]}`, "more than 65536 bytes"},
		{"too many", `{"items":[` + strings.Repeat(item+",", maxItems) + item + `]}`, "33 items"},
		{"less than none left", `{"items":[],"left":-1}`, "-1 more"},
		{"no id", `{"items":[{"scope":"user","category":"fact","text":"x"}]}`, `item 0: id: ""`},
		{"long id", `{"items":[{"id":"` + strings.Repeat("x", maxID+1) + `","scope":"user","category":"fact","text":"x"}]}`, "item 0: id"},
		{"strange id", `{"items":[{"id":"a b","scope":"user","category":"fact","text":"x"}]}`, `id: "a b"`},
		{"no scope", `{"items":[{"id":"a","scope":"system","category":"fact","text":"x"}]}`, `scope: "system"`},
		{"no category", `{"items":[{"id":"a","scope":"user","category":"order","text":"x"}]}`, `category: "order"`},
		{"no text", `{"items":[{"id":"a","scope":"user","category":"fact","text":" \n"}]}`, "text"},
		{"long text", `{"items":[{"id":"a","scope":"user","category":"fact","text":"` + strings.Repeat("é", maxText+1) + `"}]}`, "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Decode(tt.content)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(got, Parcel{}); diff != "" {
				t.Errorf("half of it: %s", diff)
			}
		})
	}
}

// TestTorn: a text that was cut anywhere gives an error and never some of the items.
func TestTorn(t *testing.T) {
	t.Parallel()
	text, err := parcel().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(text) {
		if _, err := Decode(text[:n]); err == nil {
			t.Fatalf("%d of %d bytes are taken", n, len(text))
		}
	}
}

// TestRandom: whatever is valid survives the way.
func TestRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 1))
	for range 300 {
		var want Parcel
		for i := range r.IntN(8) {
			text := []string{"x", "<b>", "a\nb", "…", "\u2028", `"\`}[r.IntN(6)]
			want.Items = append(want.Items, Item{ID: fmt.Sprint("id", i), Scope: "thread", Category: "task", Text: text + "y", Score: float64(r.IntN(1e6)) / 1e6})
		}
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Fatalf("(-got +want):\n%s", diff)
		}
	}
}

// FuzzDecode: what is taken is valid, and is the same when it is given on again.
func FuzzDecode(f *testing.F) {
	text, err := parcel().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"items":null,"left":1}`)
	f.Fuzz(func(t *testing.T, content string) {
		p, err := Decode(content)
		if err != nil {
			return
		}
		if err := p.validate(); err != nil {
			t.Fatal(err)
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(back, p); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
}
