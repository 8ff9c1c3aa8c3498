package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestHiddenTools follows a turn in which a model asks for hidden tools.
func TestHiddenTools(t *testing.T) {
	t.Parallel()

	var seen []string // what hooks are told of the tools
	p := office()
	p.Hooks = append(p.Hooks, sdk.Hook{
		Name: "look", PrePromptCompile: func(_ context.Context, _ *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			seen = append(seen, strings.Join(in.AvailableTools, " "))
			return nil, nil
		},
	})
	turn := opened(t, newHosted(p).start(t))

	_, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: phases.RequestTools, Arguments: raw(`{"domains": ["mail"]}`)})
	if phases.CodeOf(err) != phases.CauseForbidden || !strings.Contains(err.Error(), "was not offered in this turn") {
		t.Errorf("before it was offered: %v", err)
	}
	first := compiled(t, turn)
	checkSame(t, "at first", offered(t, first), []string{"read", "request_tools", "(add_event)", "(list_mail)", "(send_mail)"})
	if got := hiddenList(first); got != "- calendar: add_event\n- mail: list_mail, send_mail" {
		t.Errorf("the section lists %q", got)
	}
	_, err = turn.CallTool(t.Context(), phases.ToolCall{Tool: "send_mail"})
	if phases.CodeOf(err) != phases.CauseForbidden || !strings.Contains(err.Error(), `the tool "send_mail" is hidden: call request_tools with its domain "mail" first`) {
		t.Errorf("a hidden tool: %v", err)
	}

	res := request(t, turn, `{"domains": ["mail"]}`)
	want := `{"loaded":[{"domain":"mail","tools":[{"description":"does list_mail","name":"list_mail"},{"description":"does send_mail","name":"send_mail"}]}],"still_hidden":["calendar"]}`
	if res.IsError || string(res.Content) != want {
		t.Errorf("request_tools = %v %s", res.IsError, res.Content)
	}
	if res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "send_mail"}); err != nil || string(res.Content) != `"sent"` {
		t.Errorf("at once: %v, %v", res, err)
	}
	if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "add_event"}); phases.CodeOf(err) != phases.CauseForbidden {
		t.Errorf("a tool of another domain: %v", err)
	}
	second := compiled(t, turn)
	checkSame(t, "then", offered(t, second), []string{"list_mail", "read", "request_tools", "send_mail", "(add_event)"})
	if got := hiddenList(second); got != "- calendar: add_event" {
		t.Errorf("the section lists %q", got)
	}
	if second.Manifest.FingerprintTools == first.Manifest.FingerprintTools {
		t.Error("other tools have the same fingerprint")
	}

	// The second call of the same answer comes when nothing is hidden any more.
	request(t, turn, `{"domains": ["calendar"]}`)
	third := compiled(t, turn)
	if diff := cmp.Diff(offered(t, third), []string{"add_event", "list_mail", "read", "send_mail"}); diff != "" || hiddenList(third) != "" {
		t.Errorf("at last %q (-got +want):\n%s", hiddenList(third), diff)
	}
	if res := request(t, turn, `{"domains": ["calendar"]}`); res.IsError || !strings.Contains(string(res.Content), `"add_event"`) || !strings.Contains(string(res.Content), `"still_hidden":[]`) {
		t.Errorf("again: %v %s", res.IsError, res.Content)
	}
	checkSame(t, "ledger", rowsOf(toolRuns(third.Manifest)), []string{
		"builtin.request_tools failed forbidden", "office.send_mail failed forbidden", "builtin.request_tools succeeded", "office.send_mail succeeded",
		"office.add_event failed forbidden", "builtin.request_tools succeeded",
	})
	checkSame(t, "hooks see", seen, []string{"read request_tools", "list_mail read request_tools send_mail", "add_event list_mail read send_mail"})
}

// TestHiddenAgain: what a tool is now counts, not what it was when it was brought
// before.
func TestHiddenAgain(t *testing.T) {
	t.Parallel()

	domains := make(chan string, 3)
	p := offering("p", says("x", "done"))
	p.Hooks = []sdk.Hook{on("tools", phases.PreTools, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "x", HiddenDomain: <-domains}}})
	}, phases.KindToolBundle)}
	turn := begin(t, newHosted(p).start(t))
	for _, tt := range []struct {
		domain   string
		callable bool
	}{{"", true}, {"deep", false}, {"", true}} {
		domains <- tt.domain
		outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{}))
		_, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "x"})
		if (err == nil) != tt.callable || slices.Contains(offered(t, compiled(t, turn)), "x") != tt.callable {
			t.Errorf("in the domain %q: %v", tt.domain, err)
		}
	}
}

// TestRequestArguments: what a model gets wrong, it is told, with what it may have
// meant; what is right beside it is done.
func TestRequestArguments(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, arguments string
		errors          []string
		loaded          []string
	}{
		{"nothing", ``, []string{"the argument is not valid JSON"}, nil},
		{"another form", `{"domains": "mail"}`, []string{`the argument is not of the form {"domains": ["NAME"]}`}, nil},
		{"another key", `{"domain": ["mail"]}`, []string{`"domains" names no domain`}, nil},
		{"too many", `{"domains": [` + strings.Repeat(`"mail",`, 64) + `"mail"]}`, []string{`"domains" names 65 domains; at most 64 at a time`}, nil},
		{"a near one", `{"domains": ["mial"]}`, []string{`there is no hidden domain "mial" (did you mean "mail"?)`}, nil},
		{"a far one", `{"domains": ["weather"]}`, []string{`there is no hidden domain "weather"; there are calendar, mail`}, nil},
		{"a tool", `{"domains": ["add_event"]}`, []string{`"add_event" is a tool of the domain "calendar": name the domain`}, nil},
		{"one of two", `{"domains": ["calender", "mail", "mail"]}`, []string{`there is no hidden domain "calender" (did you mean "calendar"?)`}, []string{"mail"}},
		{"more than asked for", `{"domains": ["mail"], "why": "to write"}`, nil, []string{"mail"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			turn := opened(t, newHosted(office()).start(t))
			compiled(t, turn)
			res := request(t, turn, tt.arguments)
			var got struct {
				Loaded []domainRow `json:"loaded"`
				Errors []string    `json:"errors"`
			}
			if err := json.Unmarshal(res.Content, &got); err != nil {
				t.Fatal(err)
			}
			var loaded []string
			for _, l := range got.Loaded {
				loaded = append(loaded, l.Domain)
			}
			if diff := cmp.Diff(got.Errors, tt.errors); diff != "" || res.IsError != (len(tt.errors) > 0) {
				t.Errorf("is an error: %v (-got +want):\n%s", res.IsError, diff)
			}
			checkSame(t, "loaded", loaded, tt.loaded)
			state := "builtin.request_tools succeeded"
			if res.IsError {
				state += " tool_error"
			}
			checkSame(t, "ledger", rowsOf(toolRuns(compiled(t, turn).Manifest)), []string{state})
		})
	}
}

// TestAskedForHowLong: the turn, and the following turns of the same session and
// epoch; a new epoch hides again.
func TestAskedForHowLong(t *testing.T) {
	t.Parallel()

	in := func(session string, epoch int) phases.Context {
		turn := host()
		turn.SessionID, turn.Epoch = session, epoch
		return turn
	}
	eng := newHosted(office()).start(t)
	old := openedAt(t, eng, in("s", 0))
	compiled(t, old)
	first := openedAt(t, eng, in("s", 1))
	compiled(t, first)
	request(t, first, `{"domains": ["mail"]}`)
	request(t, old, `{"domains": ["calendar"]}`) // for itself only
	for _, tt := range []struct {
		name string
		at   phases.Context
		want bool
	}{
		{"the next turn", in("s", 1), true},
		{"the next epoch", in("s", 2), false},
		{"the epoch before", in("s", 0), false},
		{"another session", in("other", 1), false},
		{"no session", in("", 1), false},
	} {
		turn := openedAt(t, eng, tt.at)
		_, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "send_mail"})
		if (err == nil) != tt.want || slices.Contains(offered(t, compiled(t, turn)), "send_mail") != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "add_event"}); phases.CodeOf(err) != phases.CauseForbidden {
			t.Errorf("%s: a domain that an older turn asked for: %v", tt.name, err)
		}
	}

	// A compaction in the middle of a turn leaves it what it has.
	outcome(t)(first.Dispatch(t.Context(), &phases.PostCompactionInput{}))
	if _, err := first.CallTool(t.Context(), phases.ToolCall{Tool: "send_mail"}); err != nil {
		t.Errorf("after a compaction: %v", err)
	}
	outcome(t)(startSession(t, eng, in("s", 1)).End(t.Context(), "exit"))
	if _, err := openedAt(t, eng, in("s", 1)).CallTool(t.Context(), phases.ToolCall{Tool: "send_mail"}); phases.CodeOf(err) != phases.CauseForbidden {
		t.Errorf("after the end of the session: %v", err)
	}
}

// TestRequestToolsIsNotOffered: where a model is not told what to ask for, where it
// cannot call tools, and where the host has a tool of that name. The host may ask.
func TestRequestToolsIsNotOffered(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		in     runtime.CompileInput
		reason string
	}{
		{"no tool calling", runtime.CompileInput{}, "filtered"},
		{"a small profile", small(phases.ProfileMinimal), "profile"},
		{"no profile", small(phases.ProfileNone), "profile"},
		{"no room for the list", runtime.CompileInput{ToolCalling: true, Limits: compiler.Limits{SectionChars: 1}}, "budget"},
		{"the host's", runtime.CompileInput{ToolCalling: true, ExistingTools: []string{phases.RequestTools}}, "conflict"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			eng := newHosted(office()).start(t)
			done := prompted(t)(eng.CompileTurn(t.Context(), host(), tt.in))
			checkSame(t, "tools", offered(t, done), []string{"read", "(add_event)", "(list_mail)", "(send_mail)"})
			if want := (phases.Omitted{ID: phases.RequestTools, Owner: phases.OwnerBuiltin, Reason: tt.reason}); !slices.Contains(done.Manifest.Omitted, want) {
				t.Errorf("omitted: %+v", done.Manifest.Omitted)
			}
			told := slices.ContainsFunc(done.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == "conflict" && d.Slot == phases.RequestTools })
			if told != (tt.reason == "conflict") {
				t.Errorf("diagnostics: %+v", done.Diagnostics)
			}

			turn := opened(t, eng)
			prompted(t)(turn.Compile(t.Context(), tt.in))
			if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: phases.RequestTools}); phases.CodeOf(err) != phases.CauseForbidden {
				t.Errorf("called all the same: %v", err)
			}
			tt.in.RequestedDomains = []string{"mail", "none"}
			asked := prompted(t)(turn.Compile(t.Context(), tt.in))
			checkSame(t, "asked for by the host", offered(t, asked), []string{"list_mail", "read", "send_mail", "(add_event)"})
			if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "list_mail"}); err != nil {
				t.Errorf("asked for by the host: %v", err)
			}
		})
	}
}

// small compiles a profile with tool calling.
func small(p phases.Profile) runtime.CompileInput {
	in := runtime.CompileInput{ToolCalling: true}
	in.Profile = p
	return in
}

// FuzzRequestTools: whatever a model makes up, it gets an answer that says what is
// there, and nothing is loaded that was not named.
func FuzzRequestTools(f *testing.F) {
	for _, seed := range []string{`{"domains":["mail"]}`, `{"domains":["m\u0000"]}`, `[]`, `{"domains":[["mail"]]}`, `{"domains":["\ud800"]}`, "{\"domains\":[\"\xff\"]}"} {
		f.Add([]byte(seed))
	}
	eng := newHosted(office()).start(f)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		turn := opened(t, eng)
		prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true}))
		res := request(t, turn, string(arguments))
		var got struct {
			Loaded      []domainRow `json:"loaded"`
			Errors      []string    `json:"errors"`
			StillHidden []string    `json:"still_hidden"`
		}
		if err := json.Unmarshal(res.Content, &got); err != nil {
			t.Fatalf("%s: %v", res.Content, err)
		}
		if res.IsError != (len(got.Errors) > 0) || !res.IsError && len(got.Loaded) == 0 || len(got.Loaded)+len(got.StillHidden) != 2 {
			t.Errorf("is an error: %v, %s", res.IsError, res.Content)
		}
		for _, l := range got.Loaded {
			if !strings.Contains(string(arguments), l.Domain) && !strings.Contains(string(arguments), `\u`) {
				t.Errorf("%s was loaded and not named", l.Domain)
			}
		}
		if _, err := turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true}); err != nil {
			t.Errorf("the ledger cannot be recorded: %v", err)
		}
	})
}

// domainRow is what the tests read of one loaded domain.
type domainRow struct {
	Domain string `json:"domain"`
}
