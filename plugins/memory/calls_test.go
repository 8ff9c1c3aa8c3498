package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/sdk"
)

// remembering is a turn that has stored some texts by the tool, and their ids.
func remembering(t *testing.T, p *sdk.Plugin, texts ...string) (*turn, []string) {
	t.Helper()
	x := begin(t, p, ada("1")).says("Hello!")
	var ids []string
	for _, text := range texts {
		var s toolset.Stored
		if no := x.call(toolset.Remember, args{"text": text}, &s); no != "" || s.ID == "" {
			t.Fatalf("%q: refused %q, %+v", text, no, s)
		}
		ids = append(ids, s.ID)
	}
	return x, ids
}

func TestRememberTool(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	x, ids := remembering(t, p, "I prefer tabs", "My name is Zoë")
	var s toolset.Stored
	if no := x.call(toolset.Remember, args{"text": "i PREFER  tabs."}, &s); no != "" || s.Change != itemstore.Known || s.ID != ids[0] {
		t.Errorf("the same: %q %+v", no, s)
	}
	s = toolset.Stored{}
	if no := x.call(toolset.Remember, args{"text": "Call me Zo"}, &s); no != "" || s.Change != itemstore.Replaced || !slices.Equal(s.Replaced, ids[1:]) {
		t.Errorf("another name: %q %+v", no, s)
	}
	s = toolset.Stored{}
	if no := x.call(toolset.Remember, args{"text": "I prefer four spaces", "replaces": ids[0], "category": "preference"}, &s); no != "" || !slices.Equal(s.Replaced, ids[:1]) {
		t.Errorf("another taste: %q %+v", no, s)
	}
	want := []string{"user/preference: I prefer four spaces", "user/fact: Call me Zo"}
	if diff := cmp.Diff(memories(t, p), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestRememberScopes(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	known := ada("1")
	unknown := phases.Context{WorkspaceID: "w", Actor: phases.Actor{Kind: "user"}}
	for i, tt := range []struct {
		context phases.Context
		args    args
		want    string // scope/category
		refused string
	}{
		{known, args{}, "user/fact", ""},
		{known, args{"category": "decision"}, "workspace/decision", ""},
		{known, args{"category": "task"}, "workspace/task", ""},
		{known, args{"category": "decision", "scope": "thread"}, "thread/decision", ""},
		{known, args{"scope": "agent"}, "agent/fact", ""},
		{unknown, args{}, "workspace/fact", ""},
		{unknown, args{"scope": "user"}, "", reasonNoScope},
		{unknown, args{"scope": "agent"}, "", reasonNoScope},
		{unknown, args{"scope": "thread"}, "", reasonNoScope},
	} {
		tt.args["text"] = fmt.Sprint("text ", i)
		if no := begin(t, p, tt.context).says("Hello!").call(toolset.Remember, tt.args, nil); no != tt.refused {
			t.Errorf("%v: refused %q, want %q", tt.args, no, tt.refused)
		}
		if got := memories(t, p); tt.want != "" && !slices.Contains(got, fmt.Sprintf("%s: text %d", tt.want, i)) {
			t.Errorf("%v: %q", tt.args, got)
		}
	}
}

// TestStrangers: what a turn must not see it can neither get, replace nor forget.
func TestStrangers(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	_, ids := remembering(t, p, "My dog is called Rex")
	c := ada("2")
	c.Actor.ID = "bob"
	x := begin(t, p, c).says("Forget what you know. What is my dog called?")
	x.policies[0].Value = raw(t, turnpolicy.Policy{
		Recall: "allow", RememberTool: "allow", ForgetTool: "allow", PostTurnExtraction: "allow", ActiveRecall: "allow",
		ReadTools: "allow", Prompt: "full",
	})
	var hits toolset.Hits
	if x.call(toolset.Search, args{"query": "dog Rex"}, &hits); len(hits.Items) > 0 {
		t.Errorf("found %+v", hits)
	}
	var page toolset.Page
	if x.call(toolset.List, args{}, &page); len(page.Items) > 0 {
		t.Errorf("listed %+v", page)
	}
	if no := x.call(toolset.Get, args{"id": ids[0]}, nil); no != reasonNotFound {
		t.Errorf("get: %q", no)
	}
	if no := x.call(toolset.Remember, args{"text": "x", "replaces": ids[0]}, nil); no != reasonNotFound {
		t.Errorf("replace: %q", no)
	}
	var gone toolset.Forgotten
	if x.call(toolset.Forget, args{"ids": ids}, &gone); gone.Count != 0 {
		t.Errorf("forgotten %+v", gone)
	}
	if got := memories(t, p); len(got) != 1 {
		t.Errorf("memories %q", got)
	}
}

// TestListPages: with items of any length the pages together have each item once, and
// none is longer than answers are.
func TestListPages(t *testing.T) {
	t.Parallel()
	dsn := file(t)
	var items []itemstore.Item
	for i := range 40 {
		items = append(items, itemstore.Item{Text: fmt.Sprintf("Number %d: %s", i, strings.Repeat(`"\<é`, i*4))})
	}
	seed(t, dsn, items...)
	p := configured(t, dsn, nil, nil)
	got := memories(t, p)
	slices.Sort(got)
	if len(slices.Compact(got)) != len(items) {
		t.Errorf("%d memories", len(got))
	}
	x := begin(t, p, ada("1")).says("Hello!")
	res, err := p.CallTool(t.Context(), &phases.ToolCall{Tool: toolset.List, Arguments: raw(t, args{"limit": 50}), Context: x.context, Policies: x.policies})
	if err != nil || utf8.RuneCount(res.Content) > toolset.MaxAnswer || utf8.RuneCount(res.Content) < toolset.MaxAnswer/2 {
		t.Errorf("%d characters: %v", utf8.RuneCount(res.Content), err)
	}
	var page toolset.Page
	if no := x.call(toolset.List, args{"category": "task"}, &page); no != "" || len(page.Items) != 0 {
		t.Errorf("tasks: %q %+v", no, page)
	}
}

// TestForgetByQuery: the first call shows, the second forgets just that.
func TestForgetByQuery(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	_, ids := remembering(t, p, "My dog is called Rex", "My dog likes bones", "I prefer tabs")
	x := begin(t, p, ada("2")).says("Forget what you know about my dog.")
	if got := x.policy(); got.Prompt != turnpolicy.PromptForgetOnly {
		t.Fatalf("policy %+v", got)
	}
	var m toolset.Matches
	if no := x.call(toolset.Forget, args{"query": "my dog"}, &m); no != "" || m.Count != 2 || m.Confirmation == "" {
		t.Fatalf("%q %+v", no, m)
	}
	if got := memories(t, p); len(got) != 3 {
		t.Fatalf("the first call forgot: %q", got)
	}
	// What has changed since is shown again.
	begin(t, p, ada("3")).whole("Remember that my dog is called Rexie by her friends.")
	var again toolset.Matches
	if no := x.call(toolset.Forget, args{"query": "my dog", "confirmation": m.Confirmation}, &again); no != "" || again.Count != 3 || !strings.HasPrefix(again.Message, "The confirmation is not for these") {
		t.Fatalf("%q %+v", no, again)
	}
	var gone toolset.Forgotten
	if no := x.call(toolset.Forget, args{"query": "my dog", "confirmation": again.Confirmation}, &gone); no != "" || gone.Count != 3 {
		t.Fatalf("%q %+v", no, gone)
	}
	if got := memories(t, p); len(got) != 1 || !contains(got, "tabs") || slices.Contains(gone.IDs, ids[2]) {
		t.Errorf("left: %q", got)
	}
	if no := x.call(toolset.Forget, args{"query": "my dog", "confirmation": again.Confirmation}, &m); no != "" || m.Count != 0 {
		t.Errorf("once more: %q %+v", no, m)
	}
	// A confirmation that is made up confirms nothing.
	if no := x.call(toolset.Forget, args{"query": "tabs", "confirmation": "forget-yes"}, &m); no != "" || m.Count != 1 || len(memories(t, p)) != 1 {
		t.Errorf("%q %+v", no, m)
	}
}

func TestForgetEverything(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	x, _ := remembering(t, p, "My dog is called Rex", "I prefer tabs")
	for text, scope := range map[string]string{"The build is kiwi": "workspace", "We are on call": "thread"} {
		if no := x.call(toolset.Remember, args{"text": text, "scope": scope}, nil); no != "" {
			t.Fatal(no)
		}
	}
	forget := func(a args) int {
		t.Helper()
		var m toolset.Matches
		if no := x.call(toolset.Forget, a, &m); no != "" {
			t.Fatal(no)
		}
		a["confirmation"] = m.Confirmation
		var gone toolset.Forgotten
		if no := x.call(toolset.Forget, a, &gone); no != "" || gone.Count != m.Count {
			t.Fatalf("%q: %+v of %+v", no, gone, m)
		}
		return gone.Count
	}
	if n := forget(args{"everything": true, "scope": "user"}); n != 2 {
		t.Errorf("%d of the user", n)
	}
	if n := forget(args{"everything": true}); n != 2 {
		t.Errorf("%d of the rest", n)
	}
	if got := memories(t, p); got != nil {
		t.Errorf("left: %q", got)
	}
}

// TestRefusals: what the policy does not allow is refused with its reason.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	_, ids := remembering(t, p, "My dog is called Rex")
	all := map[string]args{
		toolset.Search: {"query": "dog"}, toolset.List: {}, toolset.Get: {"id": ids[0]}, toolset.Remember: {"text": "x"}, toolset.Forget: {"query": "dog"},
	}
	tests := []struct {
		text    string
		allowed []string
	}{
		{"What is my dog called?", toolset.Names()},
		{"Don't use your memory for this.", nil},
		{"Please don't save any of this.", []string{toolset.Search, toolset.List, toolset.Get}},
		{"Forget my dog's name.", []string{toolset.Search, toolset.List, toolset.Get, toolset.Forget}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			x := begin(t, p, ada("2")).says(tt.text)
			for tool, a := range all {
				no := x.call(tool, a, nil)
				if slices.Contains(tt.allowed, tool) != (no == "") || no != "" && no != x.policy().ReasonCode {
					t.Errorf("%s: %q, with the policy's reason %q", tool, no, x.policy().ReasonCode)
				}
			}
		})
	}
}

// TestMistakes: what a model does wrong is an answer to it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	x := begin(t, p, ada("1")).says("Hello!")
	tests := []struct {
		tool string
		args args
		want string
	}{
		{toolset.List, args{"scope": "all"}, reasonArguments},
		{toolset.Get, args{}, reasonNotFound},
		{toolset.Remember, args{"text": "x", "category": "joke"}, reasonArguments},
		{toolset.Remember, args{"text": strings.Repeat("x", 801)}, reasonArguments},
		{toolset.Remember, args{"text": "\ufeff \u200b"}, reasonArguments},
		{toolset.Remember, args{"text": "My password is hunter2-Correct9"}, reasonSecret},
		{toolset.Remember, args{"text": "x", "replaces": "01HZZZZZZZZZZZZZZZZZZZZZZZ"}, reasonNotFound},
	}
	for _, tt := range tests {
		if no := x.call(tt.tool, tt.args, nil); no != tt.want {
			t.Errorf("%s %v: %q, want %q", tt.tool, tt.args, no, tt.want)
		}
	}
	res, err := p.CallTool(t.Context(), &phases.ToolCall{
		Tool: toolset.Remember, Arguments: raw(t, args{"text": "The key is AKIAIOSFODNN7EXAMPLQ"}), Context: x.context, Policies: x.policies,
	})
	if err != nil || !res.IsError || strings.Contains(string(res.Content), "EXAMPLQ") || !strings.Contains(string(res.Content), "aws") {
		t.Errorf("a secret: %s, %v", res.Content, err)
	}
	if got := memories(t, p); got != nil {
		t.Errorf("stored %q", got)
	}
}

// TestPerson: a person at the command line needs no policy, and sees all of the
// workspace and nothing of others.
func TestPerson(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	_, ids := remembering(t, p, "My dog is called Rex")
	x := begin(t, p, phases.Context{WorkspaceID: "w"})
	var hits toolset.Hits
	if no := x.person(toolset.Search, args{"query": "dog"}, &hits); no != "" || len(hits.Items) != 1 || hits.Items[0].ScopeID != "ada" {
		t.Errorf("%q %+v", no, hits)
	}
	var s toolset.Stored
	if no := x.person(toolset.Remember, args{"text": "We deploy on Tuesdays"}, &s); no != "" {
		t.Error(no)
	}
	var whole toolset.Whole
	if x.person(toolset.Get, args{"id": s.ID}, &whole); whole.Item.Source != itemstore.SourceUser || whole.Item.Scope != itemstore.ScopeWorkspace {
		t.Errorf("%+v", whole)
	}
	other := begin(t, p, phases.Context{WorkspaceID: "other"})
	if no := other.person(toolset.Get, args{"id": ids[0]}, nil); no != reasonNotFound {
		t.Errorf("another workspace: %q", no)
	}
	var gone toolset.Forgotten
	if x.person(toolset.Forget, args{"ids": ids}, &gone); gone.Count != 1 {
		t.Errorf("%+v", gone)
	}
	if no := x.person(toolset.Remember, args{"text": "My dog is called Rex"}, &s); no != "" || s.Change != itemstore.Added {
		t.Errorf("a person may bring back what was forgotten: %q %+v", no, s)
	}
}
