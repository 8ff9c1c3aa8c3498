package shell_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// lines shows commands, one a line, with wildcards as a shell writes them.
func lines(t *testing.T, script string) []string {
	t.Helper()
	commands, err := shell.Read(script)
	if err != nil {
		t.Fatalf("%q: %v", script, err)
	}
	var all []string
	for _, c := range commands {
		line := strings.Join(c.Args, " ")
		if len(c.Files) > 0 {
			line += " <>" + strings.Join(c.Files, " <>")
		}
		if len(c.Texts) > 0 {
			line += " <<" + strings.Join(c.Texts, " <<")
		}
		if c.Dir != "" {
			line += " in " + c.Dir
		}
		if len(c.Feeds) > 0 {
			line += " | " + strings.Join(c.Feeds, ",")
		}
		all = append(all, strings.NewReplacer(string(shell.Star), "*", string(shell.Any), "?", string(shell.Unknown), "…").Replace(line))
	}
	return all
}

func TestRead(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		`cat a b`: {"cat a b"}, `cat .e""n'v'`: {"cat .env"}, `cat .en\v`: {"cat .env"}, `cat $'\x2ea'`: {"cat .a"}, `cat {a,b}{c,d}`: {"cat ac ad bc bd"}, `cat a*[bc]?`: {"cat a*??"}, `cat "a*"`: {"cat a*"},
		`x=a; cat ${x}b $y`: {"= a", "cat ab …"}, `x=a y=$x-b z`: {"= a", "= a-b", "z"}, `cat ${x:-a}`: {"= a", "cat a"}, `cat ${x%a}`: {"cat …"}, `cat $(echo a)b`: {"echo a", "cat ab"}, `cat $(make)`: {"make", "cat …"},
		`cat <a >b`: {"cat <>a <>b"}, "cat <<E\n$(x)\nE": {"x", "cat <<…\n"}, "cat <<'E'\n$(x)\nE": {"cat <<$(x)\n"}, `cat <<<a`: {"cat <<a"}, `<a`: {" <>a"}, `cd a && cat b; cd c; d`: {"cd a", "cat b in a", "cd c in a", "d in a/c"},
		`(cd a; b); c`: {"cd a", "b in a", "c"}, `a | b | sudo c`: {"a | sudo,c,b", "b | sudo,c", "sudo c"}, `for i in a b; do c $i; done`: {"for a b", "c a b"}, `f() { a; }; f`: {"a", "f"}, `if a; then b; elif c; then d; else e; fi`: {"a", "b", "c", "d", "e"},
		`while a; do b; done <c`: {"a", "b", " <>c"}, `case $(a) in x) b;; esac`: {"a", "b"}, `[[ $(a) ]]`: {"a"}, `cat <(a)`: {"a", "cat /dev/fd/63 <<…"}, `a=(b c); d "${a[@]}"`: {"= b c", "d b c"}, `~/x`: {"~/x"}, ``: nil, `# a`: nil,
	} {
		if diff := cmp.Diff(lines(t, script), want); diff != "" {
			t.Errorf("%q (-got +want):\n%s", script, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]error{
		"a (": shell.ErrSyntax, strings.Repeat("a ", shell.MaxBytes): shell.ErrTooLong, strings.Repeat("(", 300): shell.ErrTooComplex, strings.Repeat("x{1..99};", 900): shell.ErrTooComplex,
	} {
		if _, err := shell.Read(script); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, want %v", script, err, want)
		}
	}
}

// FuzzRead: it ends, and what it says of a command is not much longer than the command.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`cat {a,b}`, `x=a;x+=$x;$x`, "a <<E\n$(b)\nE", `a "$(b "$(c)")"`, `${a:-${b:-c}}`, `a=(b [3]=c)`, `f() f; f`, `@(a|b)`, `{}{}{,}`, `$((1+$(a)))`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		commands, err := shell.Read(script)
		if err != nil {
			return
		}
		for _, c := range commands {
			if len(c.Args)+len(c.Files)+len(c.Texts) == 0 {
				t.Errorf("%q: an empty command", script)
			}
		}
	})
}
