package chain

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// plenty is a budget that never binds.
const plenty = math.MaxInt

// source makes a source of a text, as Resolve would.
func source(scope Scope, display, text string) Source {
	body := strings.TrimRight(text, "\n")
	s := Source{
		Path: "/repo/" + display, Display: display, Scope: scope, Bytes: int64(len(text)),
		State: StateKept, Text: body, origin: origin{chars: utf8.RuneCountInString(body)},
	}
	s.bound(defaultFileBytes)
	return s
}

// chainOf makes a chain of the default preset.
func chainOf(sources ...Source) Chain { return Chain{Options: Default(), Sources: sources} }

// numbered is a text of lines of ten bytes.
func numbered(n int) string {
	var out strings.Builder
	for i := range n / 10 {
		fmt.Fprintf(&out, "%09d\n", i)
	}
	return out.String()
}

// got prints what each source got: state, kept and delivered bytes.
func got(r Rendering) []string {
	var out []string
	for _, s := range r.Sources {
		out = append(out, fmt.Sprintf("%s %d/%d %d %s", s.State, s.Kept, s.Bytes, s.DeliveredBytes, s.Reason))
	}
	return out
}

// widest is the room of a source's lines.
func widest(s Source) (delimiter, marker int) {
	it := newItem(&s, Default().Budget)
	return it.delimiter.Bytes, it.marker.Bytes
}

func TestAllocation(t *testing.T) {
	t.Parallel()
	head := len(header(&Options{}))
	global := source(ScopeGlobal, "~", numbered(6000))
	far := source(ScopeProject, "AGENTS.md", numbered(3000))
	near := source(ScopeProject, "a/AGENTS.md", numbered(2000))
	d := func(s Source) int { n, _ := widest(s); return n }
	m := func(s Source) int { _, n := widest(s); return n }
	omitAll := len(omittedFilesLine(2))
	tests := []struct {
		name    string
		sources []Source
		bytes   int
		want    []string
		omitted []string
	}{
		{"no budget", []Source{far}, 0, []string{"omitted 0/3000 0 omitted_budget"}, nil},
		{
			"all fit to the byte",
			[]Source{far, near},
			head + d(far) + 3000 + d(near) + 2000,
			[]string{"kept 3000/3000 3000 ", "kept 2000/2000 2000 "},
			nil,
		},
		{
			"one byte less cuts the farther",
			[]Source{far, near},
			head + d(far) + 3000 + d(near) + 1999,
			[]string{"truncated 2949/3000 2950 truncated", "kept 2000/2000 2000 "},
			nil,
		},
		{
			"room for one byte of the first",
			[]Source{far, near},
			head + d(near) + m(near) + 1,
			[]string{"omitted 0/3000 0 omitted_budget", "truncated 1/2000 2 truncated"},
			nil,
		},
		{
			"floor of the nearest, not one byte of the next",
			[]Source{far, near},
			head + d(near) + m(near) + 1024 + d(far) + m(far),
			// The omission line fits into what is left; the rest goes to the nearest.
			[]string{"omitted 0/3000 0 omitted_budget", fmt.Sprintf("truncated %d/2000 %d truncated", 1079, 1080)},
			[]string{strings.TrimSuffix(omittedLine("AGENTS.md", 3000), "\n")},
		},
		{
			"global first, then the nearest, then the farther",
			[]Source{global, far, near},
			head + d(global) + m(global) + 4096 + d(near) + m(near) + 1024 + d(far) + m(far) + 1024,
			// The nearest became 4 bytes shorter than its room by the cut, and the next has them, and so on.
			[]string{"truncated 4099/6000 4100 truncated", "truncated 1019/3000 1020 truncated", "truncated 1019/2000 1020 truncated"},
			nil,
		},
		{
			"one that becomes whole gives its marker to the next",
			[]Source{far, near},
			head + d(near) + 2000 + d(far) + m(far) + 1024,
			[]string{"truncated 1019/3000 1020 truncated", "kept 2000/2000 2000 "},
			nil,
		},
		{
			"lines for omitted sources, or one for all",
			[]Source{far, far, near},
			head + d(near) + m(near) + 1024 + omitAll + 1,
			[]string{"omitted 0/3000 0 omitted_budget", "omitted 0/3000 0 omitted_budget", "truncated 1019/2000 1020 truncated"},
			[]string{strings.TrimSuffix(omittedFilesLine(2), "\n")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Render(chainOf(tt.sources...), Budget{tt.bytes, plenty})
			if diff := cmp.Diff(got(r), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if len(r.Text) > tt.bytes {
				t.Errorf("%d bytes in a budget of %d", len(r.Text), tt.bytes)
			}
			if r.Text == "" {
				return
			}
			_, omitted := parse(t, r.Text, false)
			if diff := cmp.Diff(omitted, tt.omitted); diff != "" {
				t.Errorf("omitted (-got +want)\n%s", diff)
			}
		})
	}
}

func TestLimitOfOneFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       string
	}{
		{"exactly as long, with a newline", strings.Repeat("x", 99) + "\n", "kept 100/100 100 "},
		{"exactly as long, without", strings.Repeat("x", 100), "kept 100/100 101 "},
		{"newlines beyond", strings.Repeat("x", 100) + "\n\n\n", "kept 103/103 101 "},
		{"longer", strings.Repeat("x", 101), "truncated 100/101 101 truncated"},
		{"longer by escaping", strings.Repeat("x", 90) + "\n[source: x", "truncated 90/101 91 truncated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := chainOf(source(ScopeProject, "AGENTS.md", tt.text))
			c.Options.Budget.File = 100
			r := Render(c, Budget{plenty, plenty})
			if diff := cmp.Diff(got(r), []string{tt.want}); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			list, _ := parse(t, r.Text, false)
			if list[0].truncated != strings.HasPrefix(tt.want, "truncated") {
				t.Errorf("read back as %+v", list[0])
			}
		})
	}
}

func TestKeptCountsTheFilesBytes(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "\uFEFF" + strings.Repeat("line\r\n", 500) + "\xff\xff\xff"})
	c := Resolve(OS{}, base, Options{})
	whole := Render(c, Budget{plenty, plenty}).Sources[0]
	if whole.Bytes != 3006 || whole.Kept != 3006 {
		t.Errorf("whole: %d of %d", whole.Kept, whole.Bytes)
	}
	part := Render(c, Budget{1000, plenty})
	list, _ := parse(t, part.Text, false)
	breaks := strings.Count(list[0].body, "\n")
	if want := int64(3 + len(list[0].body) + breaks); list[0].kept != want || part.Sources[0].Kept != want {
		t.Errorf("kept %d, want %d", list[0].kept, want)
	}
}
