package genkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/google/go-cmp/cmp"

	grapnel "github.com/grapnelhq/grapnel/adapters/genkit"
	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

var turns atomic.Int64

// where is the context of a new turn.
func where(context.Context) phases.Context {
	c := looptest.Where()
	c.TurnID = strconv.FormatInt(turns.Add(1), 10)
	return c
}

// talk is a turn whose model gives the replies one after the other, and keeps its requests.
type talk struct {
	*looptest.Turn

	mu       sync.Mutex
	requests []looptest.Request
}

func script(eng *runtime.Engine, replies ...looptest.Reply) *talk {
	s := &talk{Turn: &looptest.Turn{Engine: eng, Where: where, Message: "hello", Instructions: "You help with files.", Tools: looptest.Tools()}}
	s.Model = func(_ context.Context, r looptest.Request) (looptest.Reply, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, r)
		return replies[len(s.requests)-1], nil
	}
	return s
}

// last is the last message that the model was sent.
func (s *talk) last() string {
	messages := s.requests[len(s.requests)-1].Messages
	return messages[len(messages)-1]
}

func calling(tool, arguments string) looptest.Reply {
	return looptest.Reply{Calls: []loop.Call{{ID: "c-" + tool, Tool: tool, Arguments: json.RawMessage(arguments)}}}
}

func saying(text string) looptest.Reply { return looptest.Reply{Text: text} }

// ended is how the only turn of an engine has ended.
func ended(t *testing.T, s *looptest.Engine) *phases.PostTurnInput {
	t.Helper()
	if err := s.WaitBackground(context.Background()); err != nil || len(s.Ended) != 1 {
		t.Fatalf("%d turns have ended, %v", len(s.Ended), err)
	}
	return <-s.Ended
}

func use(o grapnel.Options) ai.GenerateOption { return ai.WithUse(grapnel.New(o)) }

// TestHistory: what the next Generate begins with has the host's own instructions and the reminders, and no compiled prompt.
func TestHistory(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	first := script(s.Engine, calling("note", `{}`), saying("done"))
	g, options := host(t.Context(), first.Turn)
	resp, err := genkit.Generate(t.Context(), g, append(options, use(grapnel.Options{Engine: s.Engine, Where: where}))...)
	if err != nil {
		t.Fatal(err)
	}
	_ = ended(t, s)
	var roles []string
	for _, m := range resp.History() {
		roles = append(roles, string(m.Role))
	}
	if got := strings.Join(roles, " "); got != "system user model tool user model" || resp.History()[0].Text() != "You help with files." {
		t.Fatalf("the history has %s, and begins with %q", got, resp.History()[0].Text())
	}
	second := script(s.Engine, saying("again"))
	g, _ = host(t.Context(), second.Turn)
	_, err = genkit.Generate(t.Context(), g, ai.WithModelName("test/pretends"), ai.WithMessages(resp.History()...), ai.WithPrompt("and then?"),
		use(grapnel.Options{Engine: s.Engine, Where: where}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := second.requests[0].System, first.requests[0].System; strings.Count(got, "You help with files.") != 1 || strings.Count(got, "Be brief.") != 1 || len(got) > len(want) {
		t.Errorf("the second system prompt is\n%s", got)
	}
	if got := strings.Join(second.requests[0].Messages, "\n"); strings.Count(got, "house.note") != 1 {
		t.Errorf("the reminder is not in the conversation once:\n%s", got)
	}
	if end := ended(t, s); end.UserText.Text != "and then?" {
		t.Errorf("the user said %q", end.UserText.Text)
	}
}

// TestAskInterrupts: a person is asked by an interrupt of Genkit's, and the restarted call goes on in a turn of its own.
func TestAskInterrupts(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	o := grapnel.Options{Engine: s.Engine, Where: where}
	o.Loop.Ask = func(ctx context.Context, _ *loop.Refused) (bool, error) {
		if ai.IsToolResumed(ctx) {
			return true, nil
		}
		return false, loop.ErrNotYet
	}
	turn := script(s.Engine, calling("note", `{}`), calling("mail", `{"to":"ann"}`), saying("sent"))
	g, options := host(t.Context(), turn.Turn)
	resp, err := genkit.Generate(t.Context(), g, append(options, use(o))...)
	if err != nil || len(resp.Interrupts()) != 1 || fmt.Sprint(resp.Interrupts()[0].Metadata["interrupt"]) != "map[by:house.guard reason:to whom]" {
		t.Fatalf("response %+v, %v", resp, err)
	}
	if end := ended(t, s); end.Status != phases.TurnInterrupted {
		t.Errorf("status %s", end.Status)
	}
	mail := genkit.LookupTool(g, "mail")
	resp, err = genkit.Generate(t.Context(), g, ai.WithModelName("test/pretends"), ai.WithTools(mail), ai.WithMessages(resp.History()...),
		ai.WithToolRestarts(mail.Restart(resp.Interrupts()[0], nil)), use(o))
	if err != nil || resp.Text() != "sent" || !strings.Contains(strings.Join(turn.requests[2].Messages, "\n"), `mail got {"to":"ann"}`) {
		t.Fatalf("response %+v, %v, sent %q", resp, err, turn.requests)
	}
	if end := ended(t, s); end.Status != phases.TurnSucceeded || end.UserText.Text != "hello" {
		t.Errorf("status %s of %q", end.Status, end.UserText.Text)
	}
}

// full is a sink with a disk that is full.
type full struct{ runtime.Sink }

func (full) Append(_ context.Context, m *manifest.Manifest, _ []manifest.Text) error {
	return manifest.Seal(m, nil, nil)
}
func (full) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil } //nolint:nilnil // there is none
func (full) Report(context.Context, manifest.Usage) error                     { return errors.New("disk full") }

// TestUsage: what models report is put into Grapnel's terms, and what cannot be kept fails no turn.
func TestUsage(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		model string
		in    ai.GenerationUsage
		want  phases.Usage
	}{
		{"googleai/gemini", ai.GenerationUsage{InputTokens: 100, OutputTokens: 10, ThoughtsTokens: 5, TotalTokens: 115, CachedContentTokens: 60}, phases.Usage{InputTokens: 100, OutputTokens: 15, CacheReadTokens: 60}},
		{"openai/gpt", ai.GenerationUsage{InputTokens: 100, OutputTokens: 15, ThoughtsTokens: 5, TotalTokens: 115, CachedContentTokens: 60}, phases.Usage{InputTokens: 100, OutputTokens: 15, CacheReadTokens: 60}},
		{"anthropic/claude", ai.GenerationUsage{InputTokens: 100, OutputTokens: 15, CachedContentTokens: 60}, phases.Usage{InputTokens: 160, OutputTokens: 15, CacheReadTokens: 60}},
		{"house/any", ai.GenerationUsage{InputTokens: 100, OutputTokens: 15, CachedContentTokens: 600}, phases.Usage{InputTokens: 700, OutputTokens: 15, CacheReadTokens: 600}},
		{"house/negative", ai.GenerationUsage{InputTokens: -1, OutputTokens: 15, CachedContentTokens: -600}, phases.Usage{OutputTokens: 15}},
	} {
		s := looptest.Start(t)
		resp, err := generateWith(t, s.Engine, tt.model, &tt.in)
		if err != nil || resp.Text() != "done" {
			t.Fatalf("%s: %v", tt.model, err)
		}
		if used := s.Usage(); len(used) != 1 || used[0].Usage != tt.want {
			t.Errorf("%s: usage %+v, want %+v", tt.model, used, tt.want)
		}
		if m := s.Records()[0].Cache; m.Provider+"/"+m.Model != tt.model {
			t.Errorf("the record has the model %q of %q", m.Model, m.Provider)
		}
	}
	if resp, err := generateWith(t, looptest.Host(t, full{}), "house/any", &ai.GenerationUsage{InputTokens: 5}); err != nil || resp.Text() != "done" {
		t.Errorf("with a full disk: %v", err)
	}
}

// generateWith runs a turn with a model of some name, which reports u.
func generateWith(t *testing.T, eng *runtime.Engine, name string, u *ai.GenerationUsage, options ...ai.GenerateOption) (*ai.ModelResponse, error) {
	t.Helper()
	g := genkit.Init(context.WithoutCancel(t.Context()))
	supports := &ai.ModelSupports{SystemRole: true, Multiturn: true, Media: true}
	m := genkit.DefineModel(g, name, &ai.ModelOptions{Supports: supports}, func(context.Context, *ai.ModelRequest, ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		return &ai.ModelResponse{Message: ai.NewModelTextMessage("done"), Usage: u}, nil
	})
	return genkit.Generate(t.Context(), g, append(options, ai.WithModel(m), use(grapnel.Options{Engine: eng, Where: where, WithoutTools: true}))...)
}

// TestUserText: only the user's words are judged: neither an image nor what Genkit adds.
func TestUserText(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	image := ai.NewUserMessage(ai.NewMediaPart("image/png", "data:image/png;base64,forbidden"))
	if _, err := generateWith(t, s.Engine, "house/any", nil, ai.WithMessages(image)); err != nil {
		t.Error(err)
	}
	if end := ended(t, s); end.UserText.Text != "" {
		t.Errorf("the user said %q", end.UserText.Text)
	}
	document := ai.DocumentFromText("forbidden", nil)
	if _, err := generateWith(t, s.Engine, "house/any", nil, ai.WithPrompt("hello"), ai.WithDocs(document), ai.WithOutputType(struct{ Forbidden string }{})); err != nil && !strings.Contains(err.Error(), "schema") { // the answer is no JSON
		t.Error(err)
	}
	if end := ended(t, s); end.UserText.Text != "hello" {
		t.Errorf("the user said %q", end.UserText.Text)
	}
}

// TestSystemPrompt: parts that are put together without anything in between are the prompt of the record; what stands behind
// it is reported.
func TestSystemPrompt(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := script(s.Engine, saying("done"))
	turn.Loop.Input.Custom = []compiler.CustomSection{{SectionID: "aside", Placement: phases.PlacementSystemMessage, Text: "By the way."}}
	if _, err := generate(t.Context(), turn.Turn); err != nil {
		t.Fatal(err)
	}
	system, aside := strings.CutSuffix(turn.requests[0].System, "\n\nBy the way.")
	changes := s.Records()[1].Requests[0].Changes
	if !aside || len(changes) != 1 || changes[0].ID != "aside" {
		t.Errorf("changes %+v of the system prompt\n%s", changes, system)
	}
	if got, want := manifest.Fingerprint(system, nil), s.Records()[0].FingerprintFull; got != want || !strings.Contains(system, compiler.Boundary) {
		t.Errorf("the fingerprint is %s, that of the record %s:\n%s", got, want, system)
	}
}

// TestStopped: a reader of the stream who goes away has interrupted the turn.
func TestStopped(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := script(s.Engine, saying("one two three"))
	g, options := host(t.Context(), turn.Turn)
	for piece, err := range genkit.GenerateStream(t.Context(), g, append(options, use(grapnel.Options{Engine: s.Engine, Where: where}))...) {
		if err != nil || piece.Chunk.Text() != "one " {
			t.Errorf("piece %+v, %v", piece, err)
		}
		break
	}
	if end := ended(t, s); end.Status != phases.TurnInterrupted {
		t.Errorf("status %s", end.Status)
	}
}

// TestCancelledByName: a cause that the host gave a name is a cancellation all the same, in the model and in a tool.
func TestCancelledByName(t *testing.T) {
	t.Parallel()

	for _, place := range []string{"model", "tool", "result"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := func() { cancel(errors.New("the user pressed stop")) }
		var end *phases.PostTurnInput
		eng := looptest.Host(t, nil, &sdk.Plugin{Name: "watch", Version: "1.0.0", Hooks: []sdk.Hook{
			{Name: "end", Kinds: []phases.Kind{phases.KindNoop}, PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
				end = in
				return nil, nil
			}},
			{Name: "result", Kinds: []phases.Kind{phases.KindReminder}, ToolPostCall: func(ctx context.Context, _ *sdk.Call, _ *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				if place == "result" {
					stop()
					<-ctx.Done()
				}
				return nil, nil
			}},
		}})
		turn := script(eng, calling("list", `{}`), saying("never"))
		turn.Tools = []loop.Tool{{Tool: phases.Tool{Name: "list"}, Call: func(context.Context, json.RawMessage) (string, error) {
			if place == "tool" {
				stop()
			}
			return "listed", nil
		}}}
		if place == "model" {
			turn.Model = func(context.Context, looptest.Request) (looptest.Reply, error) {
				stop()
				return looptest.Reply{}, errors.New("the connection was reset")
			}
		}
		if _, err := generate(ctx, turn.Turn); err == nil {
			t.Errorf("%s: no error", place)
		}
		if err := eng.WaitBackground(t.Context()); err != nil || end == nil || end.Status != phases.TurnInterrupted {
			t.Errorf("%s: the turn ended as %+v, %v", place, end, err)
		}
	}
}

// TestInner: a Generate inside of a tool has its own model's abilities; one that outlives the turn is refused.
func TestInner(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	var kept []context.Context
	inner := func(ctx context.Context) (string, error) {
		g := genkit.Init(context.WithoutCancel(ctx))
		m := genkit.DefineModel(g, "house/plain", &ai.ModelOptions{Supports: &ai.ModelSupports{SystemRole: true, Multiturn: true}}, func(_ context.Context, r *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			return &ai.ModelResponse{Message: ai.NewModelTextMessage(fmt.Sprintf("%d tools", len(r.Tools)))}, nil
		})
		return genkit.GenerateText(ctx, g, ai.WithModel(m), ai.WithPrompt("forbidden to nobody"), use(grapnel.Options{Engine: s.Engine, Where: where, Agent: "plain", WithoutTools: true}))
	}
	turn := script(s.Engine, calling("ask", `{}`), saying("done"))
	turn.Tools = []loop.Tool{{Tool: phases.Tool{Name: "ask"}, Call: func(ctx context.Context, _ json.RawMessage) (string, error) {
		kept = append(kept, context.WithoutCancel(ctx))
		return inner(ctx)
	}}}
	if answer, err := generate(t.Context(), turn.Turn); err != nil || answer != "done" || !strings.Contains(turn.last(), "0 tools") {
		t.Fatalf("answer %q, %v: the model was told %q", answer, err, turn.last())
	}
	for _, m := range s.Records() {
		if m.AgentID == "plain" && m.Cache.Model != "plain" {
			t.Errorf("the record of the inner agent has the model %q", m.Cache.Model)
		}
	}
	_ = ended(t, s)
	if _, err := inner(kept[0]); !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("a Generate behind the end: %v", err)
	}
}

// TestRetry: a request that is repeated by another middleware has the same reminders again.
func TestRetry(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := script(s.Engine, calling("note", `{}`), saying("lost"), looptest.Reply{Text: "done", Usage: phases.Usage{InputTokens: 7}})
	g, options := host(t.Context(), turn.Turn)
	requests := 0
	retry := ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{WrapModel: func(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
			if requests++; requests == 2 {
				_, _ = next(ctx, p)
			}
			return next(ctx, p)
		}}, nil
	})
	for name, uses := range map[string][]ai.Middleware{"outside": {retry, grapnel.New(grapnel.Options{Engine: s.Engine, Where: where})}, "inside": {grapnel.New(grapnel.Options{Engine: s.Engine, Where: where}), retry}} {
		requests, turn.requests = 0, nil
		resp, err := genkit.Generate(t.Context(), g, append(options, ai.WithUse(uses...))...)
		if err != nil || resp.Text() != "done" || !cmp.Equal(turn.requests[1].Messages, turn.requests[2].Messages) || strings.Count(turn.last(), "house.note") != 1 {
			t.Errorf("%s: %v, requests %q", name, err, turn.requests)
		}
		_ = ended(t, s)
	}
}

// TestShared: one middleware serves generations at the same time.
func TestShared(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	shared := use(grapnel.Options{Engine: s.Engine, Where: where})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			turn := script(s.Engine, calling("note", `{}`), calling("count", `{}`), saying("done"))
			g, options := host(t.Context(), turn.Turn)
			if text, err := genkit.GenerateText(t.Context(), g, append(options, shared)...); err != nil || text != "done" {
				t.Errorf("answer %q, %v", text, err)
			}
		})
	}
	wait.Wait()
	if err := s.WaitBackground(t.Context()); err != nil || len(s.Ended) != 4 {
		t.Errorf("%d turns have ended, %v", len(s.Ended), err)
	}
}

// TestMissing: what a host forgot is an error of its first Generate.
func TestMissing(t *testing.T) {
	t.Parallel()

	if _, err := grapnel.New(grapnel.Options{}).New(t.Context()); err == nil || !strings.Contains(err.Error(), "Options.Engine") {
		t.Errorf("error %v", err)
	}
}
