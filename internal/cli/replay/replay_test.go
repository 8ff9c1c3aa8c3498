package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/internal/cli/replay"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestSameAgain replays twice: the model's answers come from the record, also where the
// same question had two answers, and the clock is the recorded one.
func TestSameAgain(t *testing.T) {
	t.Parallel()

	path := made(t, "hello", "hello", "bye", "fail")
	var first []*replay.Run
	for range 2 {
		runs := play(t, read(t, path, replay.Filter{}), urgency(""))
		if len(runs) != 5 {
			t.Fatalf("%d runs", len(runs))
		}
		for i, r := range runs {
			if r.Outcome != replay.Same || r.Run != i+1 || len(r.Unrecorded) > 0 || len(r.Differences) > 0 || r.Plugin != "urgency" {
				t.Errorf("run %+v", r)
			}
		}
		if runs[3].Now.Code != "plugin_error" || runs[3].Now.PluginCode != "down" || len(runs[0].Now.Hashes) != 2 || runs[4].Subscription != "urgency.look" {
			t.Errorf("runs %+v, %+v", runs[3], runs[0])
		}
		if first == nil {
			first = runs
			continue
		}
		// All but times is the same in both; the failure's message has one in it.
		if diff := cmp.Diff(runs, first, cmpopts.IgnoreFields(replay.Answer{}, "MS", "Message")); diff != "" {
			t.Errorf("the second replay (-got +want):\n%s", diff)
		}
	}
}

// TestChangedPlugin is found: what it says, and what it asks.
func TestChangedPlugin(t *testing.T) {
	t.Parallel()

	all := read(t, made(t, "hello"), replay.Filter{})
	runs := play(t, all, urgency("changed "))
	if got := runs[0]; got.Outcome != replay.Differs || len(got.Unrecorded) != 1 || got.Unrecorded[0] != "model.complete" {
		t.Errorf("run %+v", got)
	}
	want := []replay.Difference{
		{Pointer: "/contributions/0/content", Recorded: json.RawMessage(`"answer 1 to hello {\"value\":null} 12:00:00"`), Now: json.RawMessage(`"no model: unavailable"`)},
		{Pointer: "/contributions/1", Recorded: json.RawMessage(`{"kind":"noop"}`)},
	}
	if diff := cmp.Diff(runs[0].Differences, want); diff != "" {
		t.Errorf("differences (-got +want):\n%s", diff)
	}
	if got := runs[1]; got.Outcome != replay.Differs || got.Differences[0].Pointer != "/content" {
		t.Errorf("tool %+v", got)
	}
}

// failing is an engine that gives every call the same answer.
type failing struct {
	now *runtime.Exchange
	err error
}

func (f failing) Replay(context.Context, *runtime.Exchange) (*runtime.Exchange, error) {
	return f.now, f.err
}

func TestFailures(t *testing.T) {
	t.Parallel()

	path := made(t, "hello", "fail")
	crash := &runtime.Exchange{Err: &phases.Error{Code: phases.CauseCrash, Message: "it has exited"}}
	answer := &runtime.Exchange{Result: &phases.Result{}}
	for name, tt := range map[string]struct {
		now  *runtime.Exchange
		want []replay.Outcome
	}{
		"a crash":   {crash, []replay.Outcome{replay.Failed, replay.Differs}},
		"an answer": {answer, []replay.Outcome{replay.Differs, replay.Differs}},
	} {
		var got []replay.Outcome
		part := read(t, path, replay.Filter{Subscription: "urgency.look"}).Parts[0]
		if err := part.Play(t.Context(), failing{now: tt.now}, 1, func(r *replay.Run) { got = append(got, r.Outcome) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got[:2], tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	part := read(t, path, replay.Filter{}).Parts[0]
	if err := part.Play(t.Context(), failing{err: context.Canceled}, 1, func(*replay.Run) { t.Error("a run") }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestRead sorts by plugin and configuration.
func TestRead(t *testing.T) {
	t.Parallel()

	const head = `{"grapnel_record":1,"kind":"header","session":"a"}` + "\n" + `{"grapnel_record":1,"kind":"header","session":"b"}` + "\n"
	configure := func(session, plugin, start, config string) string {
		return `{"kind":"configure","session":"` + session + `","plugin":"` + plugin + `","start":` + start + `,"configuration":{"instance":"` + plugin +
			`","config":` + config + `,"services":[]},"description":{"name":"own","version":"1","hooks":[{"name":"h","phase":"x.host.p"}]}}` + "\n"
	}
	call := func(session, plugin, start, err string) string {
		return `{"kind":"dispatch","session":"` + session + `","plugin":"` + plugin + `","start":` + start + `,"subscription":"` + plugin +
			`.h","dispatch":{"phase":"turn.pre_policy"},"error":{"code":"` + err + `","message":""}}` + "\n"
	}
	text := head + configure("a", "one", "1", `{"v":1}`) + configure("b", "one", "1", `{"v":2}`) + call("a", "one", "1", "crash") + call("b", "one", "1", "cancelled") +
		configure("a", "one", "2", `{"v":1}`) + call("a", "one", "2", "crash") + call("a", "other", "9", "timeout") +
		`{"kind":"gap","session":"a","omitted":2,"why":"full"}` + "\n" + `{"kind":"end","session":"a","omitted":5,"why":"full"}` + "\n" + `{"kind":"end","ses`
	all, err := replay.Read(strings.NewReader(text), replay.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all.Parts {
		got = append(got, p.Plugin+"/"+p.Own+" "+string(p.Configuration.Config)+" "+string(rune('0'+p.Len())))
	}
	want := []string{`one/own {"v":1} 2`, `one/own {"v":2} 1`, "other/other  1"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("parts (-got +want):\n%s", diff)
	}
	if all.Omitted != 5 || all.Why != "full" || all.Unfinished != 1 || all.Parts[0].Phases[0] != "x.host.p" {
		t.Errorf("recording %+v", all)
	}
	// Nobody knows what would have been answered to a caller who had gone.
	err = all.Parts[1].Play(t.Context(), failing{now: &runtime.Exchange{Result: &phases.Result{}}}, 7, func(r *replay.Run) {
		if r.Outcome != replay.Skipped || r.Run != 7 {
			t.Errorf("run %+v", r)
		}
	})
	if err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		text string
		f    replay.Filter
		want string
	}{
		"no such plugin":       {text, replay.Filter{Plugin: "ones"}, `no call of a plugin "ones" is in the record (did you mean "one"?)`},
		"no such subscription": {text, replay.Filter{Subscription: "other.g"}, `no call of "other.g" is in the record (did you mean "other.h"?)`},
		"of another plugin":    {text, replay.Filter{Plugin: "one", Subscription: "other.h"}, `no call of "other.h" is in the record`},
		"nothing":              {head, replay.Filter{}, "nothing is recorded in it"},
		"damaged":              {head + "x\n", replay.Filter{}, "line 3"},
	} {
		if _, err := replay.Read(strings.NewReader(tt.text), tt.f); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}
