package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/text"
)

func TestHead(t *testing.T) {
	t.Parallel()
	const family = "👩‍👩‍👧‍👦" // seven characters
	tests := []struct {
		name, in string
		room     int
		want     string
	}{
		{"fits", "abc", 3, "abc"},
		{"no room", "abc", 0, ""},
		{"negative room", "abc", -5, ""},
		{"character", "abcdef", 3, "abc"},
		{"newline at half", "abc\ndefgh", 6, "abc"},
		{"newline before half", "abc\ndefgh", 7, "abc\ndef"},
		{"newline right behind the room", "abcdef\nghi", 6, "abcdef"},
		{"accent stays with its letter", "abe\u0301x", 3, "ab"},
		{"family stays together", "ab" + family + "c", 8, "ab"},
		{"family does not even begin", family, 6, ""},
		{"flags go in pairs", "🇩🇪🇫🇷🇯🇵", 3, "🇩🇪"},
		{"flags after a letter", "x🇩🇪🇫🇷", 4, "x🇩🇪"},
		{"syllable of parts", "\u1112\u1161\u11ab\u1112", 2, ""},
		{"endless cluster is divided", "a" + strings.Repeat("\u0301", 3000), 2000, "a" + strings.Repeat("\u0301", 1999)},
		{"long cluster is not", "ab" + strings.Repeat("\u0301", 1000), 900, "a"},
	}
	for _, tt := range tests {
		if got := text.Head(tt.in, tt.room); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	frame := text.Frame{Open: "Preamble.\n\n<X>", Close: "</X>"} // 14 + 1 + 1 + 4 = 20 characters beside the body
	body := strings.Repeat("0123456789", 10)
	marker := len("\n[truncated: kept 100 of 100 characters]") // 40
	tests := []struct {
		name  string
		in    string
		limit int
		frame text.Frame
		want  text.Fitted
	}{
		{"fits exactly", body, 120, frame, text.Fitted{Text: "Preamble.\n\n<X>\n" + body + "\n</X>", Body: body, Original: 120, Kept: 120}},
		{"one too many", body, 119, frame, text.Fitted{
			Text: "Preamble.\n\n<X>\n" + body[:59] + "\n[truncated: kept 79 of 120 characters]\n</X>", Body: body[:59],
			Original: 120, Kept: 79, Cut: true,
		}},
		{"one character", body, 20 + marker + 1, frame, text.Fitted{
			Text: "Preamble.\n\n<X>\n0\n[truncated: kept 21 of 120 characters]\n</X>", Body: "0", Original: 120, Kept: 21, Cut: true,
		}},
		{"not even one", body, 20 + marker, frame, text.Fitted{Original: 120, Omitted: true}},
		{"negative limit", "", -1, text.Frame{}, text.Fitted{Omitted: true}},
		{"nothing fits into nothing", "", 0, text.Frame{}, text.Fitted{}},
		{"frame too large", "", 18, frame, text.Fitted{Original: 19, Omitted: true}},
		{"no frame", body, 99, text.Frame{}, text.Fitted{
			Text: body[:59] + "\n[truncated: kept 59 of 100 characters]", Body: body[:59], Original: 100, Kept: 59, Cut: true,
		}},
		{"half a frame", body, 99, text.Frame{Close: "--"}, text.Fitted{
			Text: body[:56] + "\n[truncated: kept 59 of 103 characters]\n--", Body: body[:56], Original: 103, Kept: 59, Cut: true,
		}},
		{"short text that does not fit", "0123456789", 9, text.Frame{}, text.Fitted{Original: 10, Omitted: true}},
		{"at a newline", strings.Repeat("line of 16 chars\n", 10), 120, text.Frame{}, text.Fitted{
			Text: "line of 16 chars\nline of 16 chars\nline of 16 chars\nline of 16 chars\n[truncated: kept 67 of 170 characters]",
			Body: "line of 16 chars\nline of 16 chars\nline of 16 chars\nline of 16 chars", Original: 170, Kept: 67, Cut: true,
		}},
		{"first cluster too long", "a" + strings.Repeat("\u0301", 99), 60, text.Frame{}, text.Fitted{Original: 100, Omitted: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(text.Cut(tt.in, tt.limit, tt.frame), tt.want); diff != "" {
				t.Errorf("got/want:\n%s", diff)
			}
		})
	}
}

// checkCuts asserts the invariants of one text over many limits.
func checkCuts(t *testing.T, in string, frame text.Frame, limits int) {
	t.Helper()
	body, _ := text.Escape(text.Normalize(in), frame)
	original := text.Size(frame, text.Chars(body))
	previous := text.Fitted{}
	for limit := range limits {
		got := text.Cut(body, limit, frame)
		if n := text.Chars(got.Text); n > limit {
			t.Fatalf("limit %d: %d characters: %q", limit, n, got.Text)
		}
		if !utf8.ValidString(got.Text) {
			t.Fatalf("limit %d: not UTF-8: %q", limit, got.Text)
		}
		if got.Kept < previous.Kept || limit > 0 && got.Omitted && !previous.Omitted {
			t.Fatalf("limit %d keeps %d of %q, a smaller one %d", limit, got.Kept, body, previous.Kept)
		}
		if got != text.Cut(body, limit, frame) {
			t.Fatalf("limit %d: twice is not the same", limit)
		}
		if !strings.HasPrefix(body, got.Body) || !got.Omitted && got.Kept != text.Size(frame, text.Chars(got.Body)) || got.Original != original {
			t.Fatalf("limit %d: counts of %+v are wrong for %q", limit, got, body)
		}
		checkForm(t, got, body, frame, limit)
		previous = got
	}
}

// checkForm asserts that the parts of one result agree with each other.
func checkForm(t *testing.T, got text.Fitted, body string, frame text.Frame, limit int) {
	t.Helper()
	want := text.Render(frame, got.Body, "")
	switch least := text.Least(frame, text.Chars(body), got.Original); {
	case got.Omitted:
		want = ""
		if got.Kept != 0 || got.Cut {
			t.Fatalf("limit %d: omitted, yet %+v", limit, got)
		}
	case limit < least:
		t.Fatalf("limit %d: something was kept below Least, %d: %+v", limit, least, got)
	case got.Cut:
		want = text.Render(frame, got.Body, text.Marker(got.Kept, got.Original))
	case got.Kept != got.Original || text.Chars(want) != got.Kept:
		t.Fatalf("limit %d: whole, yet %+v", limit, got)
	}
	if diff := cmp.Diff(got.Text, want); diff != "" {
		t.Fatalf("limit %d got/want:\n%s", limit, diff)
	}
	if found, n := text.Escape(got.Body, frame); n != 0 {
		t.Fatalf("limit %d: the cut body holds what is protected: %q", limit, found)
	}
}

func FuzzCut(f *testing.F) {
	for _, p := range pieces {
		f.Add(strings.Repeat(p, 9)+p+"\n", "<AGENTS_MD>", "</AGENTS_MD>")
	}
	f.Fuzz(func(t *testing.T, s, open, closing string) {
		// As many limits are tried as there are characters, so there are few.
		if !utf8.ValidString(s+"|"+open+"|"+closing) || len(s)+len(open)+len(closing) > 600 {
			t.Skip()
		}
		checkCuts(t, s, text.Frame{Open: open, Close: closing}, len(s)+len(open)+len(closing)+60)
	})
}

// Texts made to be slow: clusters of a MiB, emoji that never end, nothing but
// newlines. The steps are bounded, so this is quick or times out.
func TestCutIsBounded(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"marks": "\u0301", "joiners": "\u200d", "emoji": "😀\u200d", "flags": "🇩", "prepend": "\u0600", "newlines": "\n", "syllables": "\u1112",
	} {
		s := strings.Repeat(unit, 1<<20/len(unit))
		for limit := 100_000; limit < 100_015; limit++ {
			if got := text.Cut(s, limit, text.Frame{}); !got.Cut || text.Chars(got.Text) > limit {
				t.Errorf("%s: limit %d gives %d characters", name, limit, text.Chars(got.Text))
			}
		}
	}
}
