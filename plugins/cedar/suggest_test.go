package cedar_test

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/facts"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/cedar"
)

func newSuggester() *cedar.Suggester {
	return cedar.NewSuggester(func(name string) bool { return strings.Contains(name, "ghp_") })
}

// TestSuggestionsCount: a rule denies as many calls as it says.
func TestSuggestionsCount(t *testing.T) {
	t.Parallel()
	s := newSuggester()
	var calls []*phases.Facts
	for _, name := range cedar.Sets() {
		_, cases, _ := cedar.Set(name)
		for line := range strings.Lines(cases) {
			words := strings.Fields(line)
			if len(words) < 3 || words[0] == "#" {
				continue
			}
			words[2] = strings.Join(words[2:], " ")
			args, err := json.Marshal(map[string]string{map[string]string{"Bash": "command", "WebFetch": "url"}[words[1]]: words[2], "file_path": words[2]})
			if err != nil {
				t.Fatal(err)
			}
			f := facts.Of(words[1], args, nil, "/home/me/project", "/home/me")
			s.Add(f, strconv.Itoa(len(calls)/10), func() string { return words[2] })
			calls = append(calls, f)
		}
	}
	found := s.Suggestions()
	if found.Unparsed == 0 || found.LeftOut != 0 {
		t.Errorf("%+v", found)
	}
	kinds := map[string]int{}
	for _, r := range found.Rules {
		kinds[r.Section]++
	}
	if len(kinds) != 6 {
		t.Errorf("%v", kinds)
	}
	for _, r := range s.Suggestions().Rules {
		denied := 0
		for _, f := range calls {
			if cedar.Denies(t, r.Rule, f) {
				denied++
			}
		}
		if denied != r.Calls || r.Sessions < 1 || r.Sessions > r.Calls || r.Example == "" {
			t.Errorf("it denies %d calls: %+v", denied, r)
		}
	}
}

func TestSuggestionsNarrow(t *testing.T) {
	t.Parallel()
	s := newSuggester()
	add := func(session string, reads ...string) {
		s.Add(&phases.Facts{Reads: reads, Outside: reads}, session, func() string { return "read" })
	}
	add("a", "/srv/data/x/1", "/srv/data/x/2")
	add("a", "/srv/data/x/1")
	add("b", "/srv/data/y")
	add("b", "/srv/ghp_x/y", "/srv/"+strings.Repeat("x", 1000))
	var got []string
	for _, r := range s.Suggestions().Rules {
		got = append(got, fmt.Sprintln(r.Calls, r.Sessions, strings.Split(r.Rule, `"`)[1]))
	}
	want := "4 2 reads /srv\n 3 2 reads /srv/data\n 2 1 reads /srv/data/x/1\n 1 1 reads /srv/data/x/2\n 1 1 reads /srv/data/y\n"
	if strings.Join(got, " ") != want || s.Suggestions().LeftOut != 3 {
		t.Errorf("%d left out, and\n %s", s.Suggestions().LeftOut, strings.Join(got, " "))
	}
}

// TestSuggestionsBound: neither calls nor what they are about fill the memory.
func TestSuggestionsBound(t *testing.T) {
	t.Parallel()
	s := newSuggester()
	for i := range 12_000 {
		s.Add(&phases.Facts{Hosts: []string{fmt.Sprintf("h%d.example", i), "example.com"}}, strconv.Itoa(i), func() string { return "fetch" })
	}
	found := s.Suggestions()
	if hosts := s.Suggestions().Rules; len(hosts) != 10 || hosts[0].Calls != 12_000 || hosts[0].Sessions != 12_000 || found.LeftOut != 2001 {
		t.Errorf("%+v", found)
	}
}

// FuzzSuggestions has names that would leave their quotes, or the line.
func FuzzSuggestions(f *testing.F) {
	for _, name := range []string{`x"); permit (principal, action, resource); //`, "a\nb\r\u2028\u0085c", "*/ /* \\", `\u{41}\`, "\u202egnp\u2066.exe", "\u0301'\u200b", "\x00\x1b[2J", "a;b//c", "{{.}}%s%v"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.TrimPrefix(strings.ToValidUTF8(name, "\uFFFD"), "*") // no host is a pattern
		file := path.Join("/srv/d", path.Base(name))
		call := &phases.Facts{Hosts: []string{name}, Reads: []string{file}, Writes: []string{file}, Names: []string{file}, Outside: []string{file}, Secrets: []string{file}}
		s := newSuggester()
		s.Add(call, "s", func() string { return "call" })
		for _, r := range s.Suggestions().Rules {
			if strings.ContainsFunc(r.Rule, func(c rune) bool {
				return unicode.IsControl(c) || unicode.In(c, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
			}) {
				t.Errorf("%q", r.Rule)
			}
			if report := cedar.Check(t.Context(), "x.cedar", r.Rule, ""); report.Rules != 1 || len(report.Problems) > 0 {
				t.Errorf("%s: %+v", r.Rule, report)
			} else if !cedar.Denies(t, r.Rule, call) {
				t.Errorf("%s does not deny %+v", r.Rule, call)
			}
			if report := cedar.Check(t.Context(), "x.cedar", "// such as "+name+"\n//"+r.Rule, ""); !strings.Contains(name, "\n") && report.Rules != 0 {
				t.Errorf("%s: %+v", r.Rule, report)
			}
		}
	})
}
