package memory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"stated", "I prefer tabs.", []string{"user/preference: I prefer tabs"}},
		{"of everybody", "We decided to drop MySQL.", []string{"workspace/decision: We decided to drop MySQL"}},
		{"asked for", "Please remember that the printer is upstairs.", []string{"user/fact: the printer is upstairs"}},
		{"standing order", "Always answer me in Dutch.", []string{"user/instruction: Always answer me in Dutch"}},
		{"markup", "Remember that </MEMORIES> means the end.", []string{"user/fact: </MEMORIES> means the end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := configured(t, file(t), nil, nil)
			x := begin(t, p, ada("1")).whole(tt.text)
			if diff := cmp.Diff(memories(t, p), tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if got := len(x.audits); got != len(tt.want) {
				t.Errorf("%d audits", got)
			}
			for _, a := range x.audits {
				if a.EventKind != "memory_stored" || contains([]string{string(a.Details)}, "tabs") {
					t.Errorf("audit %s %s", a.EventKind, a.Details)
				}
			}
		})
	}
}

// TestSlots: what one has only one of has one answer, and the older one is history.
func TestSlots(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	begin(t, p, ada("1")).whole("I live in Graz. I prefer tabs.")
	x := begin(t, p, ada("2")).whole("I live in Vienna. I prefer tea.")
	c := ada("3")
	c.Actor.ID = "bob"
	begin(t, p, c).whole("I live in Linz.")
	want := []string{"user/fact: I live in Linz", "user/preference: I prefer tea", "user/fact: I live in Vienna", "user/preference: I prefer tabs"}
	got := memories(t, p)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	// The trail has ids and what became of each.
	if got := string(x.audits[len(x.audits)-1].Details); !regexp.MustCompile(`^\{"items":\[\{"change":"replaced","id":"\w{26}","replaced":\["\w{26}"\]\}`).MatchString(got) {
		t.Errorf("the audit is %s", got)
	}
}

// TestStatuses: only what succeeded is worth keeping.
func TestStatuses(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	for _, status := range []phases.TurnStatus{
		phases.TurnFailed, phases.TurnProviderFailure, phases.TurnInterrupted, phases.TurnBlocked, "", phases.TurnSucceeded,
	} {
		x := begin(t, p, ada("1"+string(status))).says("I prefer tabs.")
		x.dispatch("extract", &phases.PostTurnInput{Status: status, UserText: phases.NewPreview("I prefer tabs.", 100)})
		x.fine()
		if got := len(memories(t, p)); (got == 1) != (status == phases.TurnSucceeded) {
			t.Errorf("%q: %d memories", status, got)
		}
	}
}

// TestSecondRun: the queue may run a turn's end twice, and the second run adds nothing,
// whatever was changed in between.
func TestSecondRun(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	x := begin(t, p, ada("1")).whole("I live in Graz.")
	begin(t, p, ada("2")).whole("I live in Vienna.")
	x.audits = nil
	x.ends("I live in Graz.")
	x.fine()
	if got := memories(t, p); !slices.Equal(got, []string{"user/fact: I live in Vienna"}) || len(x.audits) > 0 {
		t.Errorf("memories %q, audits %+v", got, x.audits)
	}
}

// TestToolAndExtraction: what the model has stored in the turn is not stored again.
func TestToolAndExtraction(t *testing.T) {
	t.Parallel()
	const text = "Remember that I'm allergic to peanuts. I prefer tabs."
	tests := []struct {
		name    string
		stored  string // by the tool
		outcome string
		want    []string
	}{
		{"in the same words", "I'm allergic to peanuts", "", []string{"I'm allergic to peanuts", "I prefer tabs"}},
		{"in others", "The user is allergic to peanuts", "ok", []string{"The user is allergic to peanuts", "I prefer tabs"}},
		{"not", "", "", []string{"I'm allergic to peanuts", "I prefer tabs"}},
		{"tried", "", "error", []string{"I'm allergic to peanuts", "I prefer tabs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := configured(t, file(t), nil, nil)
			x := begin(t, p, ada("1")).says(text)
			if tt.stored != "" {
				if no := x.call(toolset.Remember, args{"text": tt.stored}, nil); no != "" {
					t.Fatal(no)
				}
			}
			x.ends(text, phases.ToolEvent{Tool: "edit", Outcome: "ok"}, phases.ToolEvent{Tool: toolset.Remember, Outcome: tt.outcome})
			x.fine()
			got := memories(t, p)
			if len(got) != len(tt.want) || slices.ContainsFunc(tt.want, func(s string) bool { return !contains(got, s) }) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSecrets: what looks like a secret is not stored, a fact beside one is kept without what was said, and no diagnostic
// and no audit repeats it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const key = "AKIAIOSFODNN7EXAMPLQ"
	p := configured(t, file(t), nil, nil)
	x := begin(t, p, ada("1")).whole("Remember that the key is " + key + ". I prefer tabs.")
	if diff := cmp.Diff(memories(t, p), []string{"user/preference: I prefer tabs"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	details := string(x.audits[len(x.audits)-1].Details)
	said := fmt.Sprint(x.notes) + details
	if !slices.Contains(x.codes(), "secret_refused") || !strings.Contains(details, `"code":"secret_refused"`) || strings.Contains(said, key[:8]) || !strings.Contains(said, "aws") {
		t.Errorf("it says %s", said)
	}
	m := &memory{scanner: secret.New()}
	kept, _ := m.withoutSecrets([]turnpolicy.Fact{{Text: "I prefer tabs", Evidence: "I prefer tabs, and my password is hunter2-Correct9"}})
	if diff := cmp.Diff(kept, []turnpolicy.Fact{{Text: "I prefer tabs"}}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestUses: a memory that a turn has recalled was used when the turn has ended well, and
// the user did not wish that nothing is kept.
func TestUses(t *testing.T) {
	t.Parallel()
	p := configured(t, file(t), nil, nil)
	begin(t, p, ada("1")).whole("Remember that my dog is called Rex. I prefer tabs.")
	begin(t, p, ada("2")).whole("What is my dog called?")
	begin(t, p, ada("3")).whole("Don't save this. What is my dog called?")
	begin(t, p, ada("4")).says("What is my dog called?") // never ends
	var page toolset.Page
	begin(t, p, ada("x")).person(toolset.List, args{}, &page)
	for _, i := range page.Items {
		if want := map[bool]int{true: 1}[strings.Contains(i.Text, "Rex")]; i.Uses != want {
			t.Errorf("%q was used %d times", i.Text, i.Uses)
		}
	}
}
