package text_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/text"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"nothing to do", "a\nb\n", "a\nb\n"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"lone CR", "a\rb\r", "a\nb\n"},
		{"CR LF", "a\r\r\nb", "a\n\nb"},
		{"LF CR", "a\n\rb", "a\n\nb"},
		{"one mark", "\ufeffa", "a"},
		{"only the first mark", "\ufeff\ufeffa\ufeff", "\ufeffa\ufeff"},
		{"mark and newlines", "\ufeff\r\n", "\n"},
		{"other separators stay", "a\u2028b\u0085c\vd", "a\u2028b\u0085c\vd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(text.Normalize(tt.in), tt.want); diff != "" {
				t.Errorf("got/want:\n%s", diff)
			}
		})
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                 "",
		"añ😀\ufffd":        "",
		"ab\x00c":          "text has a NUL character at byte 2",
		"12345678é\xff":    "text is not valid UTF-8 at byte 10",
		"é\xe2\x82":        "text is not valid UTF-8 at byte 2",
		"\xed\xa0\x80":     "text is not valid UTF-8 at byte 0",
		"a\x00\xff":        "text has a NUL character at byte 1",
		"a\xff\x00":        "text is not valid UTF-8 at byte 1",
		"\ufffd\xff\ufffd": "text is not valid UTF-8 at byte 3",
	} {
		got := ""
		if err := text.Valid(in); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"valid", "añ😀\ufffd", "añ😀\ufffd"},
		{"each NUL", "a\x00\x00b", "a\ufffd\ufffdb"},
		{"a run of bytes", "a\xff\xfe\x80b\xe2\x82", "a\ufffdb\ufffd"},
		{"both", "\xff\x00", "\ufffd\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := text.Repair(tt.in); got != tt.want || text.Valid(got) != nil {
				t.Errorf("Repair(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
