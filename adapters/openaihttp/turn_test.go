package openaihttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// problem is an error's body, of the form of all APIs.
type problem struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func (s said) problem(t *testing.T) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(s.body), &p); err != nil || p.Type != "error" || p.Error.Message == "" {
		t.Errorf("%q is not an API's error: %v", s.body, err)
	}
	return p
}

func TestRefusedTurn(t *testing.T) {
	t.Parallel()
	each(t, script(), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Do the forbidden thing.")
		s := c.ask()
		if p := s.problem(t); s.status != http.StatusForbidden || p.Error.Type != "permission_error" || !strings.Contains(p.Error.Message, "refused by desk.judge: not here") {
			t.Errorf("the client got %d %+v", s.status, p)
		}
		if c.ended().Status != phases.TurnBlocked || c.model.count() != 0 {
			t.Error("the turn was not blocked")
		}
	})
}

// TestInterjection: what the user says beside a result is judged, too.
func TestInterjection(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"a", "read", `{}`}}}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Read.")
		c.ask()
		c.result(call{id: "a", args: "one"})
		c.user("And now the forbidden thing.")
		if s := c.ask(); s.status != http.StatusForbidden || c.ended().Status != phases.TurnBlocked {
			t.Errorf("the client got %+v", s)
		}
	})
}

// TestTextIsNotHeld: deltas of text reach the client before the answer ends, calls do not.
func TestTextIsNotHeld(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "early", calls: []call{{"denied-1", "shell", `{}`}}}, said{text: " late"}), func(t *testing.T, c *talk) {
		t.Helper()
		if !c.stream {
			return
		}
		seen := make(chan struct{})
		var once sync.Once
		c.model.inStream = func(r *http.Request) {
			select {
			case <-seen:
			case <-r.Context().Done():
				t.Error("the client saw nothing before the end")
			}
		}
		c.user("Go.")
		res := c.do(t.Context(), raw(c.request()))
		defer func() { _ = res.Body.Close() }()
		lines, text := bufio.NewScanner(res.Body), ""
		for lines.Scan() {
			if text += lines.Text(); strings.Contains(text, "ea") && strings.Contains(text, "rly") {
				once.Do(func() { close(seen) })
			}
		}
		if !strings.Contains(text, "te") || strings.Contains(text, "denied-1") {
			t.Errorf("the client got %s", text)
		}
		c.ended()
	})
}

func TestClientCancels(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "early", calls: []call{{"a", "slow", `{}`}}}), func(t *testing.T, c *talk) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		c.desk.slow = func(ctx context.Context) {
			cancel()
			<-ctx.Done()
			close(gone)
		}
		c.user("Go.")
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+c.path, bytes.NewReader(raw(c.request())))
		if res, err := c.Client().Do(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		<-gone
		if end := c.ended(); end.Status != phases.TurnInterrupted {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

// TestClientCancelsStream: the provider is not left talking.
func TestClientCancelsStream(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "early"}), func(t *testing.T, c *talk) {
		t.Helper()
		if !c.stream {
			return
		}
		gone := make(chan struct{})
		c.model.inStream = func(r *http.Request) {
			<-r.Context().Done()
			close(gone)
		}
		c.user("Go.")
		ctx, cancel := context.WithCancel(t.Context())
		res := c.do(ctx, raw(c.request()))
		_, _ = io.ReadFull(res.Body, make([]byte, 20))
		cancel()
		_ = res.Body.Close()
		<-gone
		if end := c.ended(); end.Status != phases.TurnInterrupted {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

// TestAgents: an agent's call is answered by another one, in the same turn.
func TestAgents(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"a", "read", `{}`}}}, said{text: "I helped."}, said{text: "Done."}), func(t *testing.T, c *talk) {
		t.Helper()
		header := func(agent string) map[string]string {
			return map[string]string{"X-Grapnel-Workspace": "w", "X-Grapnel-Thread": "one", "X-Grapnel-Turn": "1", "X-Grapnel-Agent": agent}
		}
		c.header = header("writer")
		c.user("Write.")
		c.ask()
		helper := &talk{world: c.world, path: c.path, stream: c.stream, header: header("reader")}
		helper.user("Read it.")
		helper.ask()
		c.result(call{id: "a", args: "I helped."})
		c.ask()
		end := c.ended()
		if len(c.ends) > 0 || end.AssistantText.Text != "Done." || end.Usage.InputTokens != 300 {
			t.Errorf("the turn ended with %+v", end)
		}
		var agents []string
		for _, m := range c.sink.Prompts() {
			agents = append(agents, m.WorkspaceID+" "+m.ThreadID+" "+m.TurnID+" "+m.AgentID)
		}
		if got, want := strings.Join(agents, ", "), "w one 1 writer, w one 1 reader, w one 1 writer"; got != want {
			t.Errorf("prompts of %s, want %s", got, want)
		}
		for name := range c.model.headers[0] {
			if strings.HasPrefix(name, "X-Grapnel") {
				t.Errorf("the provider gets %s", name)
			}
		}
		if c.model.headers[0].Get("Authorization") != "Bearer key" {
			t.Error("the provider gets no credentials")
		}
	})
}

// TestAgentsAtOnce: two agents begin a turn at the same time.
func TestAgentsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(said{text: "a"}, said{text: "b"}), nil)
	var both sync.WaitGroup
	both.Add(2)
	w.model.inStream = func(*http.Request) {
		both.Done()
		both.Wait()
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			c := &talk{world: w, path: chatPath, stream: true, header: map[string]string{"X-Grapnel-Turn": "1", "X-Grapnel-Agent": strconv.Itoa(i)}}
			c.user("Go.")
			c.ask()
		})
	}
	wg.Wait()
	if w.ended().Status != phases.TurnSucceeded || len(w.ends) > 0 {
		t.Error("it was not one turn")
	}
}

// TestUnknownFieldsKept: what the proxy does not know keeps its bytes and its order.
func TestUnknownFieldsKept(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		chatPath:      `{"zeta":1.00,"model":"m","seed":` + bigNumber + `,"messages":[{"role":"user","name":"<b>","content":[{"type":"text","text":"Hi \u003c \ud83d\ude00","x":1e400}]}],"alpha":{"b":1,"a":2}}`,
		responsesPath: `{"zeta":1.00,"model":"m","seed":` + bigNumber + `,"input":[{"role":"user","name":"<b>","content":[{"type":"input_text","text":"Hi \u003c \ud83d\ude00","x":1e400}]}],"alpha":{"b":1,"a":2}}`,
		messagesPath:  `{"zeta":1.00,"model":"m","seed":` + bigNumber + `,"messages":[{"role":"user","name":"<b>","content":[{"type":"text","text":"Hi \u003c \ud83d\ude00","x":1e400}]}],"alpha":{"b":1,"a":2}}`,
	} {
		w := newWorld(t, func(int, dict) said { return said{} }, nil)
		w.model.script = func(int, dict) said { return said{body: `{}`} }
		c := &talk{world: w, path: path}
		res := c.do(t.Context(), []byte(body))
		_ = res.Body.Close()
		w.ended()
		got := w.model.body(0)
		_, message, _ := strings.Cut(strings.TrimSuffix(body, `],"alpha":{"b":1,"a":2}}`), `:[`)
		for _, want := range []string{`{"zeta":1.00,"model":"m","seed":` + bigNumber + `,"`, message, `],"alpha":{"b":1,"a":2},"`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s is not in\n%s", path, want, got)
			}
		}
	}
}

func TestUpstreamErrors(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			each(t, script(said{status: status, body: `{"error": {"message": "later"}}`}), func(t *testing.T, c *talk) {
				t.Helper()
				c.user("Hi.")
				res := c.do(t.Context(), raw(c.request())) //nolint:bodyclose // answer closes it
				after := res.Header.Get("Retry-After")
				if s := c.answer(res); s.status != status || s.body != `{"error": {"message": "later"}}` || after != "7" {
					t.Errorf("the client got %d %s, retry after %q", s.status, s.body, after)
				}
				if end := c.ended(); end.Status != phases.TurnProviderFailure {
					t.Errorf("the turn ended with %+v", end)
				}
			})
		})
	}
}

// TestRetry: a request that the provider could not answer is sent again, and goes on with the turn.
func TestRetry(t *testing.T) {
	t.Parallel()
	each(t, script(
		said{calls: []call{{"p", "desk_add", `{}`}, {"a", "read", `{}`}}}, said{status: http.StatusTooManyRequests, body: `{}`}, said{text: "Done."},
	), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Please remind me.")
		c.ask()
		c.result(call{id: "a", args: "one"})
		if s := c.ask(); s.status != http.StatusTooManyRequests {
			t.Errorf("the client got %+v", s)
		}
		if s := c.ask(); s.text != "Done." {
			t.Errorf("the client got %+v", s)
		}
		if c.conversation(1) != c.conversation(2) {
			t.Errorf("the requests differ:\n%s\n\n%s", c.conversation(1), c.conversation(2))
		}
		if end := c.ended(); end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 2 {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

// TestFailsInTheMiddle: a later round fails. A whole answer is the provider's error, a stream ends with one.
func TestFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "Hm.", calls: []call{{"p", "desk_add", `{}`}}}, said{status: http.StatusTooManyRequests, body: `{"error": 1}`}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Go.")
		s := c.ask()
		if !c.stream && (s.status != http.StatusTooManyRequests || s.body != `{"error": 1}`) || c.stream && (s.status != -1 || !strings.Contains(s.body, "429")) {
			t.Errorf("the client got %+v", s)
		}
		if end := c.ended(); end.Status != phases.TurnProviderFailure {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

// TestForcedTool: the model is not forced to make a call again that was refused.
func TestForcedTool(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"a", "shell", `{}`}}}, said{text: "I may not."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.more = map[string]dict{
			chatPath: {"tool_choice": "required"}, responsesPath: {"tool_choice": dict{"type": "function", "name": "shell"}},
			messagesPath: {"tool_choice": dict{"type": "tool", "name": "shell", "disable_parallel_tool_use": true}},
		}[c.path]
		c.user("Go.")
		c.ask()
		want := map[string]string{messagesPath: `"tool_choice":{"disable_parallel_tool_use":true,"type":"auto"}`}[c.path]
		if want == "" {
			want = `"tool_choice":"auto"`
		}
		if got := c.model.body(1); !strings.Contains(got, want) || strings.Contains(c.model.body(0), want) {
			t.Errorf("%s is not in %s", want, got)
		}
		c.ended()
	})
}

// TestPreviousResponse: the provider knows the conversation.
func TestPreviousResponse(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		w := newWorld(t, script(said{calls: []call{{"p", "desk_add", `{}`}, {"a", "read", `{"f":1}`}}}, said{text: "Done."}), nil)
		c := &talk{world: w, path: responsesPath, stream: stream}
		c.user("Go.")
		c.ask()
		c.items, c.more = nil, dict{"previous_response_id": "resp-0"}
		c.result(call{id: "a", args: "one"})
		c.ask()
		c.wantConversation(1, "result p the sum of {}", "result a one")
		end := c.ended()
		if len(end.ToolEvents) != 2 || end.ToolEvents[1].Tool != "read" || end.Status != phases.TurnSucceeded {
			t.Errorf("the turn ended with %+v", end)
		}
		if !strings.Contains(c.system(1), rulesText) {
			t.Errorf("the prompt is not in %s", c.model.body(1))
		}
	}
}
