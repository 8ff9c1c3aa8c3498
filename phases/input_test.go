package phases_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestCloneInputSharesNothing(t *testing.T) {
	t.Parallel()
	for _, in := range inputs() {
		out := phases.CloneInput(in)
		if diff := cmp.Diff(out, in); diff != "" {
			t.Errorf("%T: the copy differs (-got +want)\n%s", in, diff)
		}
		if paths := shared("", reflect.ValueOf(in), reflect.ValueOf(out)); paths != nil {
			t.Errorf("%T: the copy shares %v", in, paths)
		}
	}
}

func TestCloneContributionSharesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range contributions() {
		out := phases.CloneContribution(c)
		if diff := cmp.Diff(out, c); diff != "" {
			t.Errorf("%T: the copy differs (-got +want)\n%s", c, diff)
		}
		if paths := shared("", reflect.ValueOf(c), reflect.ValueOf(out)); paths != nil {
			t.Errorf("%T: the copy shares %v", c, paths)
		}
	}
}

// encode is JSON as text.
func encode(tb testing.TB, v any) string {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// members decodes a JSON object.
func members(tb testing.TB, v any) map[string]json.RawMessage {
	tb.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal([]byte(encode(tb, v)), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// TestWithholdEachField withholds each field of each input alone: it is gone or
// replaced by its length, it is named, and all others are as they were.
func TestWithholdEachField(t *testing.T) {
	t.Parallel()
	for _, in := range inputs() {
		before := members(t, in)
		for name := range before {
			t.Run(string(phases.PhaseOf(in))+" "+name, func(t *testing.T) {
				t.Parallel()
				out, names := phases.Withhold(in, func(field string) bool { return field != name })
				want := []string{name}
				if name == "tool" {
					want = nil
				}
				if diff := cmp.Diff(names, want); diff != "" {
					t.Fatalf("withheld (-got +want)\n%s", diff)
				}
				after := members(t, out)
				for other := range before {
					if other != name && string(after[other]) != string(before[other]) {
						t.Errorf("%s became %s", other, after[other])
					}
				}
				if name == "tool" {
					return
				}
				if left := string(after[name]); left != "" && !strings.HasPrefix(left, `{"withheld":true,"chars":`) {
					t.Errorf("still there: %s", left)
				}
				if paths := shared("", reflect.ValueOf(in), reflect.ValueOf(out)); paths != nil {
					t.Errorf("the copy shares %v", paths)
				}
			})
		}
	}
}

func TestWithhold(t *testing.T) {
	t.Parallel()
	nothing := func(string) bool { return false }
	tests := []struct {
		name  string
		in    phases.Input
		want  string
		names []string
	}{
		{
			"texts keep their length", &phases.PrePolicyInput{UserText: phases.T("añb"), Model: "m"},
			`{"user_text":{"withheld":true,"chars":3}}`,
			[]string{"model", "user_text"},
		},
		{"previews keep the original length", &phases.PostCompactionInput{Summary: phases.NewPreview("12345", 2)}, `{"summary":{"withheld":true,"chars":5}}`, []string{"summary"}},
		{"embedded JSON keeps its length", &phases.SessionResumeInput{State: json.RawMessage(`{"é":1}`)}, `{"state":{"withheld":true,"chars":7}}`, []string{"state"}},
		{"the tool's name is always sent", &phases.ToolPreCallInput{Tool: "shell", TouchedPaths: []string{"/x"}}, `{"tool":"shell"}`, []string{"touched_paths"}},
		{"what is empty is not withheld", &phases.PostTurnInput{Status: "failed"}, `{}`, []string{"status"}},
		{"empty ranges neither", &phases.PreCompactionInput{TokenBudget: 1}, `{}`, []string{"token_budget"}},
		{"withheld before", &phases.RuntimePreContextInput{UserText: phases.Text{Withheld: true, Chars: 4}}, `{"user_text":{"withheld":true,"chars":4}}`, []string{"user_text"}},
		{"a host's own", &phases.CustomInput{Fields: json.RawMessage(`{"b":"xy", "a": 1, "tool":"t"}`)}, `{"a":{"withheld":true,"chars":1},"b":{"withheld":true,"chars":4},"tool":"t"}`, []string{"a", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := encode(t, tt.in)
			out, names := phases.Withhold(tt.in, nothing)
			if got := encode(t, out); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(names, tt.names); diff != "" {
				t.Errorf("names (-got +want)\n%s", diff)
			}
			if after := encode(t, tt.in); after != before {
				t.Errorf("the input itself became %s", after)
			}
			again, _ := phases.Withhold(out, nothing)
			if got := encode(t, again); tt.name != "embedded JSON keeps its length" && tt.name != "a host's own" && got != tt.want {
				t.Errorf("withheld twice: %s", got)
			}
		})
	}
}

func TestDecodeInput(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	table, err := phases.NewTable(phases.Custom("x.acme.idle", "", 0))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		phase phases.Phase
		in    string
		want  phases.Input
		err   string
	}{
		{"empty", phases.PrePolicy, " \n", &phases.PrePolicyInput{}, ""},
		{"text", phases.PrePolicy, `{"user_text":"hi","model":"m"}`, &phases.PrePolicyInput{UserText: phases.T("hi"), Model: "m"}, ""},
		{"withheld text", phases.PrePolicy, `{"user_text":{"withheld":true,"chars":9}}`, &phases.PrePolicyInput{UserText: phases.Text{Withheld: true, Chars: 9}}, ""},
		{"preview as a text", phases.PostTurn, `{"error":"née"}`, &phases.PostTurnInput{Error: phases.Preview{Text: "née", OriginalLength: 3}}, ""},
		{
			"preview", phases.PostTurn, `{"error":{"text":"a","original_length":5,"truncated":true}}`,
			&phases.PostTurnInput{Error: phases.Preview{Text: "a", OriginalLength: 5, Truncated: true}}, "",
		},
		{"withheld preview", phases.PostTurn, `{"error":{"withheld":true,"chars":5}}`, &phases.PostTurnInput{Error: phases.Preview{OriginalLength: 5, Withheld: true}}, ""},
		{"a host's own", "x.acme.idle", `{"since": 3}`, &phases.CustomInput{Name: "x.acme.idle", Fields: json.RawMessage(`{"since": 3}`)}, ""},
		{"a host's own, a list", "x.acme.idle", `[]`, nil, "input of x.acme.idle"},
		{"unknown phase", "turn.pre_polic", `{}`, nil, `did you mean "turn.pre_policy"?`},
		{"unknown field", phases.PrePolicy, `{"user":"x"}`, nil, `input of turn.pre_policy: json: unknown field "user"`},
		{"unknown field in a preview", phases.PostTurn, `{"error":{"length":1}}`, nil, "unknown field"},
		{"wrong type", phases.PrePolicy, `{"model":3}`, nil, "cannot unmarshal number"},
		{"two values", phases.PrePolicy, `{} {}`, nil, "not valid JSON"},
		{"cut off", phases.PrePolicy, `{"model":`, nil, "not valid JSON"},
		{"too deep", phases.ToolPreCall, `{"arguments":` + deep + `}`, nil, "nested deeper than 32"},
		{"not UTF-8", phases.PrePolicy, "{\"model\":\"\xff\"}", nil, "not valid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := phases.DecodeInput(table, tt.phase, []byte(tt.in))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error is %v, want %s", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(got, tt.want); diff != "" || err != nil {
				t.Errorf("error %v (-got +want)\n%s", err, diff)
			}
		})
	}
}

func TestInputsSurviveJSON(t *testing.T) {
	t.Parallel()
	table, err := phases.NewTable(phases.Custom("x.acme.idle", "", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range inputs() {
		got, err := phases.DecodeInput(table, phases.PhaseOf(in), []byte(encode(t, in)))
		if diff := cmp.Diff(got, in); diff != "" || err != nil {
			t.Errorf("%s: error %v (-got +want)\n%s", phases.PhaseOf(in), err, diff)
		}
		if err := phases.ValidateInput(in); err != nil {
			t.Errorf("%s: %v", phases.PhaseOf(in), err)
		}
	}
	if got := encode(t, &phases.CustomInput{}); got != "{}" {
		t.Errorf("a host's own input without fields is %s", got)
	}
}

func TestDecodeContext(t *testing.T) {
	t.Parallel()
	want := *filled(&phases.Context{})
	got, err := phases.DecodeContext([]byte(encode(t, want)))
	if diff := cmp.Diff(got, want); diff != "" || err != nil {
		t.Errorf("error %v (-got +want)\n%s", err, diff)
	}
	if got, err := phases.DecodeContext([]byte(" ")); err != nil || !reflect.DeepEqual(got, phases.Context{}) {
		t.Errorf("nothing gives %+v, %v", got, err)
	}
	for in, part := range map[string]string{
		`{"workspace":"w"}`: `unknown field "workspace"`, `{`: "context is not valid JSON", `{"now":"today"}`: "context:", `{} {}`: "not valid JSON",
	} {
		if got, err := phases.DecodeContext([]byte(in)); err == nil || !strings.Contains(err.Error(), part) || !reflect.DeepEqual(got, phases.Context{}) {
			t.Errorf("%s gives %+v, %v", in, got, err)
		}
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	if got := (phases.Context{ThreadID: "t"}).Conversation(); got != "t" {
		t.Errorf("the conversation of a thread by itself is %s", got)
	}
	if got := (phases.Context{ThreadID: "t", ConversationThreadID: "c"}).Conversation(); got != "c" {
		t.Errorf("the conversation of a sub-task is %s", got)
	}
	c := *filled(&phases.Context{})
	d := c.Clone()
	if diff := cmp.Diff(d, c); diff != "" {
		t.Errorf("the copy differs (-got +want)\n%s", diff)
	}
	if paths := shared("", reflect.ValueOf(c), reflect.ValueOf(d)); paths != nil {
		t.Errorf("the copy shares %v", paths)
	}
	if got := (phases.Context{}).Clone(); !reflect.DeepEqual(got, phases.Context{}) {
		t.Errorf("the copy of nothing is %+v", got)
	}
}

func TestValidateInput(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name string
		in   phases.Input
		want string
	}{
		{"word", &phases.SessionEndInput{Reason: "a\xff"}, "reason is not valid UTF-8"},
		{"text", &phases.RuntimePreContextInput{UserText: phases.T("a\x00")}, "user_text holds a NUL"},
		{"preview", &phases.PostCompactionInput{Summary: phases.Preview{Text: "\xc3"}}, "summary is not valid UTF-8"},
		{"list", &phases.PreToolsInput{ExistingTools: []string{"ok", "\x00"}}, "existing_tools holds a NUL"},
		{"embedded JSON", &phases.SessionResumeInput{State: raw(`{`)}, "state is not valid JSON"},
		{"tool event", &phases.PostTurnInput{ToolEvents: []phases.ToolEvent{{Tool: "t", CallID: "\x00"}}}, "tool_events holds a NUL"},
		{"details of a domain event", &phases.PostTurnInput{DomainEvents: []phases.DomainEvent{{Kind: "k", Details: raw(`nonsense`)}}}, "domain_events is not valid JSON"},
		{"member of a host's own", &phases.CustomInput{Fields: raw(`{"a":"\u0000"}`)}, "input holds a NUL"},
		{"a host's own that is no object", &phases.CustomInput{Fields: raw(`[1]`)}, "input is not a JSON object"},
		{"empty", &phases.CustomInput{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := phases.ValidateInput(tt.in); fmt.Sprint(err) != tt.want && (err != nil || tt.want != "") {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	whole := func(n int) phases.Preview { return phases.NewPreview(strings.Repeat("é", n), n) }
	in := &phases.PostTurnInput{
		Status: "failed", UserText: whole(4001), AssistantText: whole(4000), Error: whole(1001),
		ToolEvents: make([]phases.ToolEvent, 41), DomainEvents: make([]phases.DomainEvent, 39), Usage: phases.Usage{InputTokens: 1},
	}
	in.ToolEvents[0].Tool, in.ToolEvents[40].Tool = "first", "last"
	out := in.Bounded()
	want := &phases.PostTurnInput{
		Status:   "failed",
		UserText: phases.Preview{Text: strings.Repeat("é", 4000), OriginalLength: 4001, Truncated: true}, AssistantText: whole(4000),
		Error:      phases.Preview{Text: strings.Repeat("é", 1000), OriginalLength: 1001, Truncated: true},
		ToolEvents: slices.Clone(in.ToolEvents[:40]), DomainEvents: in.DomainEvents, Usage: phases.Usage{InputTokens: 1},
	}
	if diff := cmp.Diff(out, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if len(in.ToolEvents) != 41 || in.UserText.Truncated {
		t.Error("the input itself was cut")
	}
	out.ToolEvents[0].Tool = "spoiled"
	if in.ToolEvents[0].Tool != "first" {
		t.Error("the events are shared")
	}
	cut := &phases.PostTurnInput{UserText: phases.Preview{Text: "ab", OriginalLength: 9000, Truncated: true}, Error: phases.Preview{OriginalLength: 5, Withheld: true}}
	if diff := cmp.Diff(cut.Bounded(), cut); diff != "" {
		t.Errorf("what was cut or withheld before (-got +want)\n%s", diff)
	}
	if diff := cmp.Diff(out.Bounded(), out); diff != "" {
		t.Errorf("bounded twice (-got +want)\n%s", diff)
	}
}
