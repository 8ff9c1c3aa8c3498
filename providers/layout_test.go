package providers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

func mustLay(t testing.TB, r Request, rules Rules) *Layout {
	t.Helper()
	l, err := Lay(r, rules)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func warned(l *Layout) string {
	var out []string
	for _, w := range l.Warnings {
		out = append(out, w.Code)
	}
	return strings.Join(out, " ")
}

func TestSystemBreakpoints(t *testing.T) {
	t.Parallel()

	prompt := compiler.Prompt{
		StableText: "## A\n\nstable", DynamicText: "## B\n\none\n\n## C\n\ntwo", Boundary: compiler.Boundary,
		FullText: "## A\n\nstable\n\n" + compiler.Boundary + "\n\n## B\n\none\n\n## C\n\ntwo",
	}
	rows := []manifest.Section{
		{SectionID: "a", Stability: phases.StabilityStable, Chars: 6},
		{SectionID: "m", Stability: phases.StabilityDynamic, Placement: phases.PlacementUserMessage, Chars: 99},
		{SectionID: "b", Stability: phases.StabilityDynamic, Chars: 3},
		{SectionID: "c", Stability: phases.StabilityDynamic, Chars: 3},
	}
	stable := manifest.Breakpoint{After: manifest.AfterStable, SectionID: "a"}
	afterB := manifest.Breakpoint{After: manifest.AfterDynamic, SectionID: "b"}
	tests := []struct {
		name  string
		rows  []manifest.Section
		plan  []manifest.Breakpoint
		limit int
		want  []string
		warns string
	}{
		{"none", rows, nil, 4, []string{""}, ""},
		{"both", rows, []manifest.Breakpoint{stable, afterB}, 4, []string{"a", "b", ""}, ""},
		{"at the very end", rows, []manifest.Breakpoint{{After: manifest.AfterDynamic, SectionID: "c"}}, 4, []string{"", "c"}, ""},
		{"no rows", nil, []manifest.Breakpoint{stable, afterB}, 4, []string{"a", ""}, "breakpoint_omitted"},
		{"rows of another prompt", []manifest.Section{{SectionID: "b", Chars: 4}}, []manifest.Breakpoint{afterB}, 4, []string{""}, "breakpoint_omitted"},
		{"a row that is too long", []manifest.Section{{SectionID: "b", Chars: 4000}}, []manifest.Breakpoint{afterB}, 4, []string{""}, "breakpoint_omitted"},
		{"not in order", rows, []manifest.Breakpoint{afterB, stable}, 4, []string{"b", ""}, "breakpoint_omitted"},
		{"twice", rows, []manifest.Breakpoint{stable, stable}, 4, []string{"a", "", ""}, ""},
		{"no tools", rows, []manifest.Breakpoint{{After: manifest.AfterTools}}, 4, []string{""}, "breakpoint_omitted"},
		{"unknown place", rows, []manifest.Breakpoint{{After: "moon"}}, 4, []string{""}, "breakpoint_omitted"},
		{"too many", rows, []manifest.Breakpoint{stable, afterB}, 1, []string{"a", "", ""}, "breakpoint_omitted"},
		{"not wanted", rows, []manifest.Breakpoint{stable, afterB}, 0, []string{""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p := prompt
			p.CachePlan.Breakpoints = tt.plan
			l := mustLay(t, Request{Prompt: p, Sections: tt.rows}, Rules{Breakpoints: tt.limit})
			var got []string
			for _, s := range l.System {
				got = append(got, s.Break.SectionID)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" || l.SystemText() != p.FullText {
				t.Errorf("pieces (-got +want):\n%s\n%q", diff, l.System)
			}
			if got := warned(l); got != tt.warns {
				t.Errorf("warnings = %q, want %q", got, tt.warns)
			}
		})
	}
}

func TestTools(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, schema, want string
	}{
		{"nothing", "", `{"properties":{},"type":"object"}`},
		{"no type", `{"properties":{"b":{},"a":{}}}`, `{"properties":{"a":{},"b":{}},"type":"object"}`},
		{"numbers", `{"type":"object","maxProperties":1e1}`, `{"maxProperties":10,"properties":{},"type":"object"}`},
		{"another type", `{"type":"array"}`, ""},
		{"several types", `{"type":["object","null"]}`, `{"properties":{},"type":"object"}`},
		{"true", `true`, ""},
		{"null", `null`, `{"properties":{},"type":"object"}`},
		{"no JSON", `{"type":`, ""},
		{"one member twice", `{"a":{"x":1,"x":2}}`, `{"a":{"x":2},"properties":{},"type":"object"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			l, err := Lay(Request{Tools: []phases.Tool{{Name: "t", InputSchema: json.RawMessage(tt.schema)}}}, Rules{})
			if (err != nil) != (tt.want == "") {
				t.Fatalf("error = %v", err)
			}
			if err == nil && string(l.Tools[0].Schema) != tt.want {
				t.Errorf("schema = %s, want %s", l.Tools[0].Schema, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), `"t"`) {
				t.Errorf("the error does not name the tool: %v", err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 70)
	r := Request{Tools: []phases.Tool{
		{Name: "a.b:c/d"},
		{Name: long},
		{Name: "plain_1-2"},
		{Name: "2nd"},
		{Name: ".hidden"},
		{Name: "e.f"},
		{Name: "e_f"},
		{Name: "e/f"},
		{Name: long + "y"},
	}}
	l := mustLay(t, r, Rules{Provider: compiler.Gemini})
	for real, wire := range map[string]string{
		"a.b:c/d": "a.b:c_d", "plain_1-2": "plain_1-2", "2nd": "_2nd", ".hidden": "_.hidden", "e.f": "e.f", "e_f": "e_f",
		"e/f": "e_f_" + hashed("e/f")[:8], long: strings.Repeat("x", 55) + "_" + hashed(long)[:8],
		"not offered!": "not_offered_",
	} {
		back, ok := l.Names.Tool(wire)
		if offered := real != "not offered!"; l.Names.Wire(real) != wire || ok != offered || offered && back != real {
			t.Errorf("%s is called %s, and that is %s, want %s", real, l.Names.Wire(real), back, wire)
		}
	}
	if got, want := warned(l), strings.TrimSpace(strings.Repeat("tool_renamed ", 6)); got != want {
		t.Errorf("warnings = %s, want %s", got, want)
	}
	if _, err := Lay(Request{Tools: []phases.Tool{{Name: "a.b"}, {Name: "a.b"}}}, Rules{}); err == nil {
		t.Error("two tools of one name gave no error")
	}
}

// script writes messages as letters: a turn of the model's in brackets.
func script(l *Layout) string {
	var b strings.Builder
	for _, m := range l.Messages {
		open, end := "(", ")"
		if m.Assistant {
			open, end = "[", "]"
		}
		b.WriteString(open)
		for i, p := range m.Parts {
			if i > 0 {
				b.WriteByte(' ')
			}
			switch {
			case p.Call != nil:
				b.WriteString("call:" + p.Call.ID)
			case p.Result != nil:
				b.WriteString("result:" + p.Result.CallID + ":" + p.Result.Tool)
			case p.Native != nil:
				b.WriteString("native")
			default:
				b.WriteString(p.Text)
			}
		}
		b.WriteString(end)
	}
	return b.String()
}

func TestMessages(t *testing.T) {
	t.Parallel()

	user := func(text string) history.Entry { return history.Entry{Role: history.RoleUser, Text: text} }
	says := func(text string, calls ...string) history.Entry {
		e := history.Entry{Role: history.RoleAssistant, Text: text}
		for _, id := range calls {
			e.Calls = append(e.Calls, history.Call{ID: id, Tool: "t" + id})
		}
		return e
	}
	results := func(ids ...string) history.Entry {
		e := history.Entry{Role: history.RoleTool}
		for _, id := range ids {
			e.Results = append(e.Results, history.Result{CallID: id})
		}
		return e
	}
	native := says("n")
	native.Native = &history.Native{Provider: "p"}
	tests := []struct {
		name    string
		prompt  []compiler.Message
		summary string
		turn    []history.Entry
		want    string
		warns   string
	}{
		{name: "nothing"},
		{name: "user first", prompt: []compiler.Message{{Text: "u"}}, summary: "s", turn: []history.Entry{user("x")}, want: "(u s x)"},
		{name: "sides alternate", turn: []history.Entry{user("a"), user("b"), says("c"), says("d"), user("e")}, want: "(a b)[c d](e)"},
		{name: "a call", turn: []history.Entry{user("a"), says("b", "1"), results("1"), says("c")}, want: "(a)[b call:1](result:1:t1)[c]"},
		{name: "several at once", turn: []history.Entry{says("", "1", "2"), results("2"), results("1")}, want: "[call:1 call:2](result:2:t2 result:1:t1)"},
		{name: "text before the result", turn: []history.Entry{says("", "1"), user("a"), results("1")}, want: "[call:1](result:1:t1 a)"},
		{name: "a late result", turn: []history.Entry{says("", "1"), user("a"), says("b"), results("1"), says("c")}, want: "[call:1](result:1:t1 a)[b c]"},
		{name: "an id used again", turn: []history.Entry{says("", "1"), results("1"), says("", "1"), results("1")}, want: "[call:1](result:1:t1)[call:1](result:1:t1)"},
		{name: "blank texts", turn: []history.Entry{user(" \n"), says("\t"), user("a")}, want: "(a)"},
		{name: "no answer", turn: []history.Entry{says("a", "1"), user("b")}, want: "[a](b)", warns: "entry_omitted"},
		{name: "native", turn: []history.Entry{native}, want: "[native]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			l := mustLay(t, Request{Prompt: compiler.Prompt{UserMessages: tt.prompt}, History: history.Window{Summary: tt.summary}, Turn: tt.turn}, Rules{})
			if got := script(l); got != tt.want {
				t.Errorf("messages = %s, want %s", got, tt.want)
			}
			if got := warned(l); got != tt.warns {
				t.Errorf("warnings = %s, want %s", got, tt.warns)
			}
		})
	}
}

// FuzzMessages: whatever the thread, sides alternate, no message is empty, and
// each result stands in the message behind that of its call, before any text.
func FuzzMessages(f *testing.F) {
	f.Add("u a1 u r1 a2 a3 r3 r2 u")
	f.Add("r1 a1 a1 r1")
	f.Fuzz(func(t *testing.T, thread string) {
		var turn []history.Entry
		for word := range strings.FieldsSeq(thread) {
			e := history.Entry{Role: history.Role(word), Text: word[1:]}
			switch word[0] {
			case 'u':
				e.Role, e.Text = history.RoleUser, word
			case 'a':
				e.Role, e.Calls = history.RoleAssistant, []history.Call{{ID: word[1:]}}
			case 'r':
				e.Role, e.Results = history.RoleTool, []history.Result{{CallID: word[1:]}}
			}
			turn = append(turn, e)
		}
		l := mustLay(t, Request{Turn: turn}, Rules{})
		calls := map[string]int{}
		for i, m := range l.Messages {
			if len(m.Parts) == 0 || i > 0 && l.Messages[i-1].Assistant == m.Assistant {
				t.Fatalf("message %d of %s", i, script(l))
			}
			texts := false
			for _, p := range m.Parts {
				texts = texts || p.Text != ""
				if p.Call != nil {
					calls[p.Call.ID]++
				}
				if p.Result != nil {
					if calls[p.Result.CallID]--; calls[p.Result.CallID] < 0 || texts && !m.Assistant {
						t.Fatalf("result %s of %s", p.Result.CallID, script(l))
					}
				}
			}
			for id, n := range calls {
				if n > 0 && !m.Assistant {
					t.Fatalf("call %s is not answered at once in %s", id, script(l))
				}
			}
		}
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()

	if _, err := (Request{}).Known("nobody"); err == nil {
		t.Error("an unknown provider gave no error")
	}
	own := &compiler.CacheFacts{Providers: []compiler.CacheProvider{{Name: "p", CacheFact: compiler.CacheFact{MinimumTokens: 3}}}}
	if got, err := (Request{Facts: own}).Known("p"); err != nil || got.MinimumTokens != 3 {
		t.Errorf("own facts: %+v, %v", got, err)
	}
}
