package tree_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/tree"
)

func TestNormalize(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("✓", tree.MaxChars)
	for _, test := range []struct {
		name, content, want string
		code                tree.Code
	}{
		{name: "empty"},
		{name: "text", content: "a ✓\n\n", want: "a ✓\n\n"},
		{name: "one mark", content: "\ufeff\ufeffa\ufeff", want: "\ufeffa\ufeff"},
		{name: "only a mark", content: "\ufeff"},
		{name: "line ends", content: "\r\na\rb\nc\r\r\n\n\r", want: "\na\nb\nc\n\n\n\n"},
		{name: "blank stays", content: " \t \r\n", want: " \t \n"},
		{name: "longest", content: long, want: long},
		{name: "longest with a mark", content: "\ufeff" + long, want: long},
		{name: "longest before normalising", content: strings.Repeat("\r\n", tree.MaxChars), want: strings.Repeat("\n", tree.MaxChars)},
		{name: "too long", content: long + "\n", code: tree.CodeTooLarge},
		{name: "NUL", content: "a\x00", code: tree.CodeInvalid},
		{name: "NUL in what is too long", content: long + "\x00", code: tree.CodeInvalid},
		{name: "no UTF-8", content: "a\xff", code: tree.CodeInvalid},
		{name: "a surrogate", content: "\xed\xa0\x80", code: tree.CodeInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			got, err := tree.Normalize(test.content)
			if test.code != "" {
				if !tree.HasCode(err, test.code) {
					t.Errorf("error %v, want the code %s", err, test.code)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("%.40q, %v; want %.40q", got, err, test.want)
			}
		})
	}
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{"", "\ufeffa\r\nb\rc", "\x00", "\xff", " \n", "\ufeff\ufeff", strings.Repeat("\r\n", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		got, err := tree.Normalize(content)
		if err != nil {
			fine := utf8.ValidString(content) && !strings.Contains(content, "\x00") && tree.Chars(content) <= tree.MaxChars
			if got != "" || fine || !tree.HasCode(err, tree.CodeInvalid) && !tree.HasCode(err, tree.CodeTooLarge) {
				t.Errorf("refused %q: %q, %v", content, got, err)
			}
			return
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\r\x00") || tree.Chars(got) > tree.MaxChars || len(got) > len(content) {
			t.Errorf("%q became %q", content, got)
		}
		// What is kept is what was written, line ends and the mark apart.
		lines := func(s string) string {
			return strings.NewReplacer("\r", "", "\n", "").Replace(strings.TrimPrefix(s, "\ufeff"))
		}
		if lines(content) != strings.NewReplacer("\n", "").Replace(got) {
			t.Errorf("%q became %q: the text is another", content, got)
		}
		// Once more changes nothing but a second mark.
		if again, err := tree.Normalize(got); err != nil || again != strings.TrimPrefix(got, "\ufeff") {
			t.Errorf("%q became %q, and that %q, %v", content, got, again, err)
		}
		if draft := strings.TrimSpace(got) == ""; draft != (tree.StatusOf(got) == tree.Draft) {
			t.Errorf("%q is %s", got, tree.StatusOf(got))
		}
	})
}

func TestCheckID(t *testing.T) {
	t.Parallel()

	for _, id := range []string{"a", "A.b_c-9", "...", "01ARZ3NDEKTSV4RRFFQ69G5FAV", strings.Repeat("x", 64)} {
		if err := tree.CheckID("id", id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", "a b", "a/b", "ä", "a\n", "\x00", "\xff", "a:b", strings.Repeat("x", 64+1)} {
		err := tree.CheckID("folder_id", id)
		if !tree.HasCode(err, tree.CodeInvalid) || !strings.HasPrefix(err.Error(), "folder_id: ") {
			t.Errorf("%q: error %v, want one that names the parameter", id, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"a", " a ", "Entwürfe 工作", "<b>&\"'\\", "\u202ea", strings.Repeat("ü", tree.MaxName)} {
		if err := tree.CheckName("name", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", " ", "\u00a0", "a\n", "a\tb", "a\x00", "a\x7f", "a\u0085", "a\u2028", "\xff", strings.Repeat("ü", tree.MaxName+1)} {
		err := tree.CheckName("title", name)
		if !tree.HasCode(err, tree.CodeInvalid) || !strings.HasPrefix(err.Error(), "title: ") {
			t.Errorf("%q: error %v, want one that names the parameter", name, err)
		}
	}
	if err := tree.CheckActor(""); err != nil {
		t.Errorf("nobody: %v", err)
	}
	for _, actor := range []string{" ", "a\nb", strings.Repeat("a", tree.MaxName+1)} {
		if err := tree.CheckActor(actor); !tree.HasCode(err, tree.CodeInvalid) {
			t.Errorf("actor %q: error %v, want one", actor, err)
		}
	}
}
