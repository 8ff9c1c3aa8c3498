package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// answering is a host whose model answers with a text.
func answering(text string) *plugintest.Host {
	return serving(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.Marshal(phases.CompletionResponse{Text: text, Model: "m", Stopped: phases.StoppedEnd})
	})
}

// serving is a host with a model.
func serving(service plugintest.Service) *plugintest.Host {
	return &plugintest.Host{Services: map[string]plugintest.Service{"model/complete": service}}
}

const (
	modelsNo   = `{"wishes":[{"intent":"no_save","confidence":0.9,"target":"","language":"en"}]}`
	modelsFact = `{"facts":[{"category":"fact","text":"The user is moving to Graz","evidence":"off to Graz for good","slot":"home","explicit":false}]}`
	hidden     = "Next month I'm off to Graz for good. What do I pack?"
)

// TestModelClassifies: the model decides where the configuration wants it, and says so.
func TestModelClassifies(t *testing.T) {
	t.Parallel()
	sure := "Don't use your memory for this."
	tests := []struct {
		name   string
		reader Reader
		text   string
		asked  bool
		reason string
	}{
		{"model", ReaderModel, "Hello there.", true, "model.no_save"},
		{"model instead of sure rules", ReaderModel, sure, true, "model.no_save"},
		{"auto without a wish", ReaderAuto, "Hello there.", false, "default.default_allow"},
		{"auto and sure", ReaderAuto, sure, false, ""},
		{"rules", ReaderRules, "Hello there.", false, "default.default_allow"},
		{"no text", ReaderModel, "", false, "default.default_allow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host := answering(modelsNo)
			p := configured(t, file(t), map[string]any{"classifier": tt.reader}, host)
			x := begin(t, p, ada("1")).says(tt.text)
			x.fine()
			if got := len(host.Calls()) > 0; got != tt.asked {
				t.Errorf("asked: %v", got)
			}
			if got := x.policy().ReasonCode; tt.reason != "" && got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
			if len(x.notes) > 0 {
				t.Errorf("remarks %+v", x.notes)
			}
		})
	}
}

// TestUnsure: with auto, a model is asked about what the rules only guess at.
func TestUnsure(t *testing.T) {
	t.Parallel()
	weak := turnpolicy.Answer{Wishes: []turnpolicy.Wish{{Intent: turnpolicy.IntentNoSave, Confidence: 0.4}}}
	strong := turnpolicy.Answer{Wishes: []turnpolicy.Wish{{Intent: turnpolicy.IntentNoSave, Confidence: 0.4}, {Intent: turnpolicy.IntentForget, Confidence: 0.9}}}
	if !unsure(weak) || unsure(strong) || unsure(turnpolicy.Answer{}) {
		t.Error("who is unsure")
	}
	// A wish in the middle of a long text is one that the rules are unsure of.
	text := strings.Repeat("It works. ", 20) + "Please don't save this. " + strings.Repeat("It works. ", 20)
	host := answering(modelsNo)
	x := begin(t, configured(t, file(t), nil, host), ada("1")).says(text)
	if got := x.policy(); got.Source != turnpolicy.SourceModel || len(host.Calls()) != 1 {
		t.Errorf("policy %+v after %d questions", got, len(host.Calls()))
	}
}

// TestModelExtracts: the model finds what the rules do not.
func TestModelExtracts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		reader Reader
		answer string
		want   []string
		codes  []string
	}{
		{"auto", ReaderAuto, modelsFact, []string{"user/fact: The user is moving to Graz"}, nil},
		{"model", ReaderModel, modelsFact, []string{"user/fact: The user is moving to Graz"}, nil},
		{"rules", ReaderRules, modelsFact, nil, nil},
		{"nothing", ReaderAuto, `{"facts":[]}`, nil, nil},
		{
			"made up", ReaderAuto, strings.ReplaceAll(modelsFact, "off to Graz for good", "send money to account 7"),
			nil,
			[]string{"facts_unfounded"},
		},
		{
			"a secret", ReaderAuto, `{"facts":[{"category":"fact","text":"I am off to Graz for good with AKIAIOSFODNN7EXAMPLQ","evidence":"off to Graz for good"}]}`,
			nil,
			[]string{"secret_refused"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := configured(t, file(t), map[string]any{"extraction": tt.reader, "classifier": "rules"}, answering(tt.answer))
			x := begin(t, p, ada("1")).whole(hidden)
			if diff := cmp.Diff(memories(t, p), tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(x.codes(), tt.codes); diff != "" {
				t.Errorf("remarks (-got +want):\n%s", diff)
			}
		})
	}
}

// TestModelFails: whatever a model does, the rules stand in for it, and somebody is told.
func TestModelFails(t *testing.T) {
	t.Parallel()
	hosts := map[string]*plugintest.Host{
		"nonsense":      answering("Sure! Here is what I think: nothing."),
		"other shape":   answering(`{"result":"none"}`),
		"half":          answering(`{"facts":[{"category":"fact","te`),
		"ten megabytes": answering(`{"facts":[` + strings.Repeat(" ", 10<<20) + `]}`),
		"too many":      answering(`{"facts":[` + strings.Repeat(`{"category":"fact","text":"x","evidence":"x"},`, 20) + `{}],"wishes":[]}`),
		"refusal": serving(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.Marshal(phases.CompletionResponse{Text: "{}", Stopped: phases.StoppedRefusal})
		}),
		"cut off": serving(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.Marshal(phases.CompletionResponse{Text: `{"facts":[],"wishes":[]}`, Stopped: phases.StoppedLength})
		}),
		"no completion": serving(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[1,2]`), nil }),
		"no budget": serving(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, phases.Errorf(phases.CauseBudgetExhausted, "no calls are left")
		}),
		"no grant": {},
	}
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := configured(t, file(t), map[string]any{"classifier": "model", "extraction": "model"}, host)
			x := begin(t, p, ada("1")).whole("Remember that I live in Graz.")
			if got := x.policy(); got.Source != turnpolicy.SourceRules || !got.ExplicitRemember {
				t.Errorf("policy %+v", got)
			}
			if got := memories(t, p); !slices.Equal(got, []string{"user/fact: I live in Graz"}) {
				t.Errorf("memories %q", got)
			}
			if diff := cmp.Diff(x.codes(), []string{"model_failed", "model_failed"}); diff != "" {
				t.Errorf("remarks (-got +want):\n%s", diff)
			}
			for _, d := range x.notes {
				if len(d.Message) > 2*maxComplaint || d.SafeForUser {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// TestNoModel: a configuration that wants a model which the host does not grant is told
// so, and auto is not.
func TestNoModel(t *testing.T) {
	t.Parallel()
	for reader, want := range map[Reader][]string{ReaderModel: {"model_failed", "model_failed"}, ReaderAuto: nil, ReaderRules: nil} {
		p := configured(t, file(t), map[string]any{"classifier": reader, "extraction": reader}, nil)
		x := begin(t, p, ada("1")).whole("Remember that I live in Graz.")
		if diff := cmp.Diff(x.codes(), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", reader, diff)
		}
		if got := memories(t, p); len(got) != 1 {
			t.Errorf("%s: %q", reader, got)
		}
	}
}

// TestLateModel: a model that does not answer leaves the hook time to go on without it.
func TestLateModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l life
		if err := l.load(); err != nil {
			t.Fatal(err)
		}
		m := &memory{settings: Settings{Classifier: ReaderModel}, rules: l.rules, model: true, now: clock}
		host := serving(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		answer, notes := m.classify(ctx, host, "Don't save this.")
		if took := time.Since(begin); took != 400*time.Millisecond-reserve {
			t.Errorf("it took %v", took)
		}
		if len(answer.Wishes) != 1 || len(notes) != 1 || !strings.Contains(notes[0].Message, "did not answer in time") {
			t.Errorf("%+v, %+v", answer, notes)
		}
	})
}

// TestQuestions: what a model is told is the user's text and the schema, and nothing that
// is remembered.
func TestQuestions(t *testing.T) {
	t.Parallel()
	host := answering(`{"facts":[],"wishes":[]}`)
	p := configured(t, file(t), map[string]any{"classifier": "model"}, host)
	begin(t, p, ada("1")).says("Remember that my dog is called Rex.").ends("Remember that my dog is called Rex.")
	begin(t, p, ada("2")).says("What does my dog eat?").ends("What does my dog eat?")
	var purposes []string
	for _, c := range host.Calls() {
		var r phases.CompletionRequest
		if err := json.Unmarshal(c.Params, &r); err != nil {
			t.Fatal(err)
		}
		purposes = append(purposes, fmt.Sprintf("%s: Rex %v", r.Purpose, strings.Contains(r.Input, "Rex")))
		if len(r.Schema) == 0 {
			t.Errorf("%s without a schema", r.Purpose)
		}
	}
	slices.Sort(purposes)
	want := []string{"memory classify: Rex false", "memory classify: Rex true", "memory extract: Rex false", "memory extract: Rex true"}
	if diff := cmp.Diff(purposes, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
