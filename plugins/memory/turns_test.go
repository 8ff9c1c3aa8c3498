package memory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
)

// TestWishes: what the user wishes is what happens, in a turn with a memory that fits.
func TestWishes(t *testing.T) {
	t.Parallel()
	const read = toolset.Search + " " + toolset.List + " " + toolset.Get
	tests := []struct {
		name, text string
		mode       phases.Mode
		metadata   string
		recalls    bool
		tools      string
		section    string
		stores     bool
	}{
		{name: "nothing", text: "I prefer tabs. What is my dog Rex eating?", recalls: true, tools: read + " memory_remember memory_forget", section: "memories", stores: true},
		{name: "no use", text: "Don't use your memory for this. What is my dog Rex eating? I prefer tabs.", tools: "", section: ""},
		{name: "no save", text: "Don't save this: I prefer tabs. What is my dog Rex eating?", recalls: true, tools: read, section: "memories"},
		{name: "forget", text: "Forget everything you know about my dog Rex.", tools: read + " memory_forget", section: "forget"},
		{name: "remember", text: "Remember that I prefer tabs when Rex is my dog.", recalls: true, tools: read + " memory_remember memory_forget", section: "remember", stores: true},
		{name: "chat mode", text: "I prefer tabs. What is my dog Rex eating?", mode: phases.ModeChat},
		{name: "override", text: "I prefer tabs. What is my dog Rex eating?", metadata: `"no_use"`},
		{name: "override of half", text: "I prefer tabs. What is my dog Rex eating?", metadata: `{"recall":"allow","prompt":"read_only","read_tools":"allow"}`, recalls: true, tools: read, section: "memories"},
		{name: "override that is none", text: "I prefer tabs. What is my dog Rex eating?", metadata: `"all"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := configured(t, file(t), nil, nil)
			begin(t, p, ada("1")).whole("Remember that my dog is called Rex.")
			c := ada("2")
			if tt.mode != "" {
				c.Mode = tt.mode
			}
			if tt.metadata != "" {
				c.Metadata = map[string]jsonRaw{overrideKey: jsonRaw(tt.metadata)}
			}
			x := begin(t, p, c).says(tt.text)
			offered := x.offered()
			s := x.section()
			x.ends(tt.text)
			x.fine()
			if got := contains(x.recalled(), "Rex"); got != tt.recalls {
				t.Errorf("recalled %v, want %v", got, tt.recalls)
			}
			if got := strings.Join(offered, " "); got != tt.tools {
				t.Errorf("offered %q, want %q", got, tt.tools)
			}
			if got := kindOf(s); got != tt.section {
				t.Errorf("section %q, want %q: %+v", got, tt.section, s)
			}
			if got := contains(memories(t, p), "I prefer tabs"); got != tt.stores {
				t.Errorf("stored %v, want %v: %q", got, tt.stores, memories(t, p))
			}
		})
	}
}

// kindOf says in a word what a section is.
func kindOf(s *phases.PromptSection) string {
	switch {
	case s == nil:
		return ""
	case s.Frame == nil && contains([]string{s.Content}, "memory_forget"):
		return "forget"
	case s.Frame != nil && contains([]string{s.Frame.Open}, "memory_remember"):
		return "remember"
	case s.Frame != nil:
		return "memories"
	}
	return "other"
}

// TestNoPolicy: without the policy's entry nothing is read and nothing is written.
func TestNoPolicy(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][]phases.PolicyEntry{
		"none": nil, "another": {{Domain: "memory", Key: "other", Value: jsonRaw(`{"recall":"allow"}`)}},
		"damaged": {{Domain: domain, Key: policyKey, Value: jsonRaw(`{"recal":"allow"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := configured(t, file(t), nil, nil)
			begin(t, p, ada("1")).whole("Remember that my dog is called Rex.")
			x := begin(t, p, ada("2"))
			x.policies = set
			x.dispatch("recall", &phases.PrePromptContextInput{UserText: phases.T("What is my dog called?")})
			x.dispatch("active_recall", &phases.PostPreflightInput{RecallPlan: jsonRaw(`{"queries":["dog"]}`)})
			if got := x.offered(); got != nil {
				t.Errorf("offered %q", got)
			}
			all := &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: toolset.Names()}
			if s := x.sectionFor(all); s != nil {
				t.Errorf("section %+v", s)
			}
			x.ends("I prefer tabs.")
			x.fine()
			for _, tool := range toolset.Names() {
				if no := x.call(tool, args{}, nil); no != reasonNoPolicy {
					t.Errorf("%s: %q", tool, no)
				}
			}
			if len(x.contexts) > 0 || contains(memories(t, p), "tabs") {
				t.Errorf("contexts %+v, memories %q", x.contexts, memories(t, p))
			}
		})
	}
}

// TestWithheld: what the operator does not show is not missed, and is said once.
func TestWithheld(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	begin(t, p, ada("1")).whole("Remember that my dog is called Rex.")
	hidden := phases.Text{Withheld: true, Chars: 12}
	x := begin(t, p, ada("2"))
	x.withheld = []string{"user_text", "metadata", "recall_plan"}
	x.dispatch("policy", &phases.PrePolicyInput{UserText: hidden})
	x.dispatch("recall", &phases.PrePromptContextInput{UserText: hidden})
	x.dispatch("active_recall", &phases.PostPreflightInput{UserText: hidden})
	x.dispatch("extract", &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.Preview{Withheld: true}})
	x.withheld = []string{"status"}
	x.ends("I prefer tabs.")
	x.fine()
	if diff := cmp.Diff(x.codes(), []string{"user_text_withheld", "metadata_withheld", "recall_plan_withheld", "status_withheld"}); diff != "" {
		t.Errorf("remarks (-got +want):\n%s", diff)
	}
	if got := memories(t, p); len(x.contexts) > 0 || len(got) != 1 {
		t.Errorf("contexts %+v, memories %q", x.contexts, got)
	}
}

// TestSubTask: what an agent writes to another is no wish of a user, and is not stored.
func TestSubTask(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	begin(t, p, ada("1")).whole("Remember that my dog is called Rex.")
	c := ada("2")
	c.Actor = phases.Actor{Kind: "agent", ID: "planner"}
	x := begin(t, p, c).whole("Remember that the task is done. Forget my dog.")
	if got := x.policy(); got.ExplicitRemember || got.ReasonCode != "default.normal" {
		t.Errorf("policy %+v", got)
	}
	if got := memories(t, p); len(got) != 1 {
		t.Errorf("memories %q", got)
	}
	if got := x.recalled(); got != nil {
		t.Errorf("the agent planner sees ada's %q", got)
	}
}
