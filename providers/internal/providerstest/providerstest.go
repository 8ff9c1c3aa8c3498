// Package providerstest is the kit for tests of adapters: a request that has everything in it, a server on the
// loopback that records what an SDK sends, and the checks that every adapter has to pass.
//
// Start at [Sample] and [Run]. Adapters of strangers are welcome to it.
//
// Stability: experimental until 1.0.
package providerstest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// Sample returns a request of the second turn of a thread: its plan has all three breakpoints, its prompt messages of
// both roles, its tools names and schemas that need care, its history a summary, calls and results, one of them late.
func Sample(t testing.TB, model string) providers.Request {
	t.Helper()
	in := compiler.Input{
		Host:        compiler.HostTexts{Identity: "You are Grapnel's sample.", Safety: "Do no harm."},
		ToolCalling: true,
		Facts:       compiler.Facts{Date: "2026-02-03"},
		Sections: []phases.MergedSection{
			section("agents_md", "AGENTS.md", "", "Run `make test`.\n\n## Not a section\n\nÄ text with a heading."),
			section("skills_runtime", "Skills Runtime", "", "turn 1"),
			section("rules", "Rules", phases.PlacementSystemMessage, "Answer briefly."),
			section("workspace", "Workspace", phases.PlacementUserMessage, "The workspace is empty."),
		},
	}
	tools := []phases.Tool{
		{Name: "read_file", Description: "Reads a file.", InputSchema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"lines":{"type":"integer","maximum":1e3}}}`)},
		{Name: "memory.search", InputSchema: json.RawMessage(`{"properties":{"query":{"type":"string"}}}`)},
		{Name: "now", Description: "Tells the time."},
	}
	for _, tool := range tools {
		in.Tools = append(in.Tools, phases.MergedTool{Name: tool.Name, Owner: "host", Definition: tool})
	}
	first, err := compiler.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	m := first.Manifest()
	in.Previous, in.Sections[1].Content = &compiler.Previous{Outline: m.Outline()}, "turn 2"
	out, err := compiler.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return providers.Request{
		Model: model, MaxTokens: 1024, Prompt: out.Prompt, Sections: out.Sections, Tools: tools,
		History: history.Window{Summary: "Earlier, the user said hello.", Entries: past()},
		Turn:    []history.Entry{{ID: "8", TurnID: "3", Role: history.RoleUser, Text: "And what is in it?"}},
	}
}

func section(id, title string, placement phases.Placement, content string) phases.MergedSection {
	return phases.MergedSection{SectionID: id, Title: title, Placement: placement, Owner: "sample", Content: content}
}

func past() []history.Entry {
	return []history.Entry{
		{ID: "1", TurnID: "1", Role: history.RoleUser, Text: "Find the plan."},
		{ID: "2", TurnID: "1", Role: history.RoleAssistant, Text: "I look.", Calls: []history.Call{
			{ID: "c1", Tool: "memory.search", Arguments: json.RawMessage(`{"query":"plan","b":1,"a":2}`)},
			{ID: "c2", Tool: "now"},
		}},
		{ID: "3", TurnID: "1", Role: history.RoleTool, Results: []history.Result{{CallID: "c1", Text: "plan.go"}}},
		{ID: "4", TurnID: "1", Role: history.RoleUser, Text: "Hurry."},
		{ID: "5", TurnID: "1", Role: history.RoleTool, Results: []history.Result{{CallID: "c2", Text: "no clock", IsError: true}}},
		{ID: "6", TurnID: "1", Role: history.RoleAssistant, Text: "It is in plan.go."},
		{ID: "7", TurnID: "2", Role: history.RoleUser, Text: "Good."},
	}
}

// Run checks what every adapter has to keep to. build makes the JSON of a request.
func Run(t *testing.T, build func(providers.Request) ([]byte, error)) {
	t.Helper()
	mustBuild := func(t *testing.T, r providers.Request) string {
		t.Helper()
		out, err := build(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	t.Run("equal requests are equal bytes", func(t *testing.T) {
		t.Parallel()
		if diff := cmp.Diff(mustBuild(t, Sample(t, "m")), mustBuild(t, Sample(t, "m"))); diff != "" {
			t.Errorf("(-one +other):\n%s", diff)
		}
	})
	t.Run("the order of tools and of members does not matter", func(t *testing.T) {
		t.Parallel()
		r := Sample(t, "m")
		want := mustBuild(t, r)
		slices.Reverse(r.Tools)
		r.Tools[2].InputSchema = json.RawMessage(`{"properties":{"lines":{"maximum":1000,"type":"integer"},"path":{"type":"string"}}, "required":["path"],"type":"object"}`)
		if diff := cmp.Diff(mustBuild(t, r), want); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
	t.Run("every text is there once", func(t *testing.T) {
		t.Parallel()
		wantOnce(t, mustBuild(t, Sample(t, "m")))
	})
	t.Run("sections behind the conversation", func(t *testing.T) {
		t.Parallel()
		r := Sample(t, "m")
		r.AfterConversation = []string{"skills_runtime", "not there"}
		body := mustBuild(t, r)
		wantOnce(t, body)
		if strings.Index(body, "turn 2") < strings.Index(body, "And what is in it?") {
			t.Errorf("the section is not behind the user's words: %s", body)
		}
	})
	t.Run("request_tools and what it loads are tools like any other", func(t *testing.T) {
		t.Parallel()
		r := Sample(t, "m")
		r.Tools = []phases.Tool{compiler.RequestTools(), {Name: "send_mail", HiddenDomain: "domain of post"}}
		wantTools(t, mustBuild(t, r))
	})
	t.Run("an empty request", func(t *testing.T) {
		t.Parallel()
		mustBuild(t, providers.Request{Model: "m"})
	})
	t.Run("impossible tools are errors", func(t *testing.T) {
		t.Parallel()
		for name, tools := range impossible() {
			if _, err := build(providers.Request{Model: "m", Tools: tools}); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	})
}

func impossible() map[string][]phases.Tool {
	return map[string][]phases.Tool{
		"a schema that is no object": {{Name: "a", InputSchema: json.RawMessage(`{"type":"string"}`)}},
		"a schema that is no JSON":   {{Name: "a", InputSchema: json.RawMessage(`{`)}},
		"two tools of one name":      {{Name: "a"}, {Name: "a"}},
	}
}

func wantOnce(t *testing.T, body string) {
	t.Helper()
	for _, text := range []string{
		"You are Grapnel's sample.", "Do no harm.", "Ä text with a heading.", "turn 2", "2026-02-03", "Answer briefly.", "The workspace is empty.",
		"Earlier, the user said hello.", "Find the plan.", "I look.", "plan.go\"", "no clock", "Hurry.", "It is in plan.go.", "Good.", "And what is in it?",
		"Reads a file.", "Tells the time.",
	} {
		if n := strings.Count(body, text); n != 1 {
			t.Errorf("%q is there %d times, want once", text, n)
		}
	}
}

// wantTools wants request_tools and a tool that it has loaded, and no word of where that was hidden.
func wantTools(t *testing.T, body string) {
	t.Helper()
	for _, text := range []string{"request_tools", "domains", "send_mail"} {
		if !strings.Contains(body, text) {
			t.Errorf("%s is not there: %s", text, body)
		}
	}
	if strings.Contains(body, "domain of post") {
		t.Errorf("the domain of a tool was sent: %s", body)
	}
}

// Sent is one request that a server got.
type Sent struct {
	Method, Path string
	Body         []byte
}

// Server is a server on the loopback. It gives the same answer to every request.
type Server struct {
	URL string

	mu   sync.Mutex
	sent []Sent
}

// Serve starts a server that ends with the test.
func Serve(t testing.TB, answer []byte) *Server {
	t.Helper()
	s := &Server{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.sent = append(s.sent, Sent{Method: req.Method, Path: req.URL.Path, Body: body})
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // a client that is gone is the test's failure
	}))
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Only returns the one request that the server got.
func (s *Server) Only(t testing.TB) Sent {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) != 1 {
		t.Fatalf("%d requests, want 1", len(s.sent))
	}
	return s.sent[0]
}

// Golden compares JSON with a file of testdata, members in their order. With update it writes the file instead.
func Golden(t testing.TB, name string, got []byte, update bool) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(got), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	b.WriteByte('\n')
	file := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil { //nolint:gosec // a fixture is no secret
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(want)); diff != "" {
		t.Errorf("%s (-got +want):\n%s", name, diff)
	}
}
