package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestBadModels: whatever a model answers, the plugin gets a code or a text that it
// can work with, and the ledger has what it cost.
func TestBadModels(t *testing.T) {
	t.Parallel()

	object := phases.CompletionRequest{Input: "x", Schema: raw(`{"type":"object"}`), MaxOutputTokens: 40}
	spent := phases.Usage{InputTokens: 5, OutputTokens: 7}
	with := func(text string, stopped phases.Stop) complete {
		return answers(phases.CompletionResponse{Text: text, Model: "m", Usage: spent, Stopped: stopped})
	}
	failing := func(err error) complete {
		return func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) {
			return phases.CompletionResponse{Text: "half", Usage: spent}, err
		}
	}
	tests := []struct {
		name  string
		model complete
		rq    phases.CompletionRequest
		said  string
		row   string
		usage phases.Usage
	}{
		{"text", with("plain", ""), hi(), "plain (m, end)", "succeeded", spent},
		{"text that was cut off", with("pla", phases.StoppedLength), hi(), "pla (m, length)", "succeeded", spent},
		{"an end of its own", with("x", "content_filter"), hi(), "x (m, other)", "succeeded", spent},
		{"JSON", with(` {"a":[1]} `, ""), object, ` {"a":[1]}  (m, end)`, "succeeded", spent},
		{"no JSON", with("Sure! Here it is:", ""), object, "invalid_reply: the model's answer is not valid JSON", "failed invalid_reply", spent},
		{"half a JSON", with(`{"a":`, phases.StoppedLength), object, "invalid_reply: the model's answer is not JSON: it was cut off at 40 output tokens", "failed invalid_reply", spent},
		{"a refusal", with("I cannot.", phases.StoppedRefusal), object, "invalid_reply: the model's answer is not JSON: it refused", "failed invalid_reply", spent},
		{"deep JSON", with(strings.Repeat("[", 40)+strings.Repeat("]", 40), ""), object, "invalid_reply: the model's answer is JSON nested deeper than 32", "failed invalid_reply", spent},
		{"not UTF-8, with a NUL", with("a\xff\x00b", ""), hi(), "a\ufffd\ufffdb (m, end)", "succeeded", spent},
		{"more", with(strings.Repeat("x", 256<<10+1), ""), hi(), "oversize_reply: the model's answer has 262145 bytes; at most 262144 are taken", "failed oversize_reply", spent},
		{"nonsense about itself", answers(phases.CompletionResponse{
			Text: "x", Model: strings.Repeat("m\n", 10<<10), Usage: phases.Usage{InputTokens: -4, OutputTokens: 1 << 60},
		}), hi(), "x (" + strings.Repeat(`m\u{a}`, 21) + "m…, end)", "succeeded", phases.Usage{OutputTokens: 1<<31 - 1}},
		{"a panic", func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) { panic("oh") }, hi(), "internal: the host service failed", "failed internal", phases.Usage{}},
		{"an error", failing(errors.New("key sk-123 is wrong")), hi(), "internal: the host service failed", "failed internal", phases.Usage{}},
		{"a coded error", failing(phases.Errorf(phases.CauseOverloaded, "try later")), hi(), "overloaded: try later", "failed overloaded", phases.Usage{}},
		{"a time-out of its own", failing(context.DeadlineExceeded), hi(), "timeout: the host service failed", "timed_out timeout", phases.Usage{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var j journal
			h := newHosted(plugin("p", on("h", phases.PrePolicy, j.asking(tt.rq))))
			h.opts.Complete = tt.model
			turn := begin(t, h.start(t))
			outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
			if diff := cmp.Diff(j.all(), []string{tt.said}); diff != "" {
				t.Errorf("the plugin saw (-got +want):\n%.1000s", diff)
			}
			rows := hostRuns(compiled(t, turn).Manifest.Runs)
			if diff := cmp.Diff(rowsOf(rows), []string{"p.h/model.complete " + tt.row}); diff != "" {
				t.Fatalf("ledger (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(rows[0].Usage, tt.usage); diff != "" || rows[0].Attempts != 1 {
				t.Errorf("%d attempts, usage (-got +want):\n%s", rows[0].Attempts, diff)
			}
		})
	}
}

// TestBadModelRequests: what does not fit never reaches the model and costs nothing.
func TestBadModelRequests(t *testing.T) {
	t.Parallel()

	large := strings.Repeat("x", phases.MaxCompletionInput)
	tests := map[string]struct {
		params string
		want   phases.Cause
	}{
		"no input":           {`{"system":"x"}`, phases.CauseInvalidReply},
		"unknown member":     {`{"input":"x","temperature":1}`, phases.CauseInvalidReply},
		"schema is a text":   {`{"input":"x","schema":"object"}`, phases.CauseInvalidReply},
		"name of the schema": {`{"input":"x","schema_name":"a b"}`, phases.CauseInvalidReply},
		"negative tokens":    {`{"input":"x","max_output_tokens":-1}`, phases.CauseInvalidReply},
		"too much":           {`{"input":"x","system":"` + large + `"}`, phases.CauseOversizeRequest},
		"the most":           {`{"input":"x","system":"` + large[1:] + `"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got []phases.Cause
			h := newHosted(plugin("p", on("h", phases.PrePolicy, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				_, err := c.Host.Call(ctx, "model", "complete", raw(tt.params))
				_, after := sdk.Complete(ctx, c.Host, hi())
				got = append(got, phases.CodeOf(err), phases.CodeOf(after))
				return nil, nil
			})))
			h.plugin("p").Limits.Model.Calls = 1
			var asked atomic.Int32
			h.opts.Complete = func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) {
				asked.Add(1)
				return phases.CompletionResponse{Text: "x"}, nil
			}
			dispatch(t, h.start(t), &phases.PrePolicyInput{})
			want := []phases.Cause{tt.want, ""}
			if tt.want == "" {
				want[1] = phases.CauseBudgetExhausted
			}
			if diff := cmp.Diff(got, want); diff != "" || asked.Load() != 1 {
				t.Errorf("asked %d times; codes (-got +want):\n%s", asked.Load(), diff)
			}
		})
	}
}

// TestModelTime: a call ends before the hook that makes it, by the operator's
// limit, and with its caller.
func TestModelTime(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		timeout time.Duration // the hook's
		limit   time.Duration // the operator's
		cancel  time.Duration // when the host gives up; 0 is never
		took    time.Duration
		said    string
		row     string
	}{
		{"the hook's time", 500 * ms, 0, 0, 450 * ms, "timeout: the model has not answered in its caller's time", "timed_out timeout"},
		{"at most a tenth of a second is left", 2 * time.Second, 0, 0, 1900 * ms, "timeout: the model has not answered in its caller's time", "timed_out timeout"},
		{"the operator's", 2 * time.Second, 300 * ms, 0, 300 * ms, "timeout: the model has not answered within 300ms (limits.model.time)", "timed_out timeout"},
		{"the host gives up", 2 * time.Second, 0, 100 * ms, 100 * ms, "cancelled: the caller does not wait any longer", "cancelled cancelled"},
	}
	for _, tt := range tests {
		for name, heeds := range map[string]bool{"heeds its context": true, "hangs": false} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()

				synctest.Test(t, func(t *testing.T) {
					var j journal
					var ended time.Duration
					start, release := time.Now(), make(chan struct{})
					h := newHosted(plugin("p", on("h", phases.PostPreflight, j.asking(hi()))))
					h.override("p.h", phases.Override{Timeout: new(phases.Duration(tt.timeout))}).phase(phases.PostPreflight, budget(5*time.Second))
					h.plugin("p").Limits.Model.Time = phases.Duration(tt.limit)
					h.opts.Complete = func(ctx context.Context, _ phases.CompletionRequest) (phases.CompletionResponse, error) {
						<-ctx.Done()
						ended = time.Since(start)
						if !heeds {
							<-release
						}
						return phases.CompletionResponse{Text: "late"}, ctx.Err()
					}
					eng := h.start(t)
					turn := begin(t, eng)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if tt.cancel > 0 {
						time.AfterFunc(tt.cancel, cancel)
					}
					_, err := turn.Dispatch(ctx, &phases.PostPreflightInput{})
					if (err != nil) != (tt.cancel > 0) {
						t.Errorf("the phase: %v", err)
					}
					synctest.Wait()
					if took := time.Since(start); took != tt.took || ended != tt.took {
						t.Errorf("the phase took %v, the function's context %v; want %v", took, ended, tt.took)
					}
					checkSame(t, "the plugin saw", j.all(), []string{tt.said})
					checkSame(t, "ledger", rowsOf(hostRuns(compiled(t, turn).Manifest.Runs)), []string{"p.h/model.complete " + tt.row})
					if n := eng.Stats().ModelHanging; (n == 1) == heeds {
						t.Errorf("%d calls hang", n)
					}
					close(release)
					synctest.Wait()
					if n := eng.Stats().ModelHanging; n != 0 {
						t.Errorf("%d calls hang at the end", n)
					}
				})
			})
		}
	}
}

// TestHangingModel: a model that hangs for ever costs a few goroutines; after that
// hooks go on without it at once.
func TestHangingModel(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var j journal
		var inside atomic.Int32
		release := make(chan struct{})
		h := newHosted(plugin("p", on("h", phases.PrePolicy, j.asking(hi()))))
		h.opts.Complete = func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) {
			inside.Add(1)
			<-release
			return phases.CompletionResponse{}, nil
		}
		eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 12 {
			dispatch(t, eng, &phases.PrePolicyInput{})
		}
		if took := time.Since(start); inside.Load() != 8 || took != 8*450*ms {
			t.Errorf("%d calls in %v", inside.Load(), took)
		}
		if lines := j.all(); lines[11] != "overloaded: the model hangs: 8 calls have not returned" {
			t.Errorf("the plugin saw %q", lines)
		}
		start = time.Now()
		err = eng.Close(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "8 calls of the model have not returned") || time.Since(start) > time.Second {
			t.Errorf("Close = %v after %v", err, time.Since(start))
		}
		close(release)
		synctest.Wait()
		if n := eng.Stats().ModelHanging; n != 0 {
			t.Errorf("%d calls hang at the end", n)
		}
	})
}
