package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkBacktest judges transcripts in the format of Claude Code with three guards: one of files, one by a condition and
// one that is asked about each call. It reports calls a second. GRAPNEL_LONG=1 makes them 100,000 in 300 sessions.
func BenchmarkBacktest(b *testing.B) {
	sessions, calls := 30, 20
	if os.Getenv(longSwitch) != "" {
		sessions, calls = 300, 334
	}
	home := b.TempDir()
	b.Setenv("HOME", home)
	b.Setenv("XDG_CONFIG_HOME", "")
	b.Setenv("XDG_CACHE_HOME", "")
	writeTranscripts(b, filepath.Join(home, ".claude", "projects", "-repo-app"), sessions, calls)
	guards := filepath.Join(home, "guards.yaml")
	if err := os.WriteFile(guards, []byte(threeGuards), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var out, errs bytes.Buffer
		args := []string{"backtest", "--config", guards, "--since", "2026-01-01", "--fresh", "--json"}
		if code := run(context.Background(), args, streams{in: strings.NewReader(""), out: &out, err: &errs}); code != exitOK {
			b.Fatalf("exit code %d: %s", code, errs.String())
		}
		var r struct {
			Calls map[string]int `json:"calls"`
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			b.Fatal(err)
		}
		if all := r.Calls["allow"] + r.Calls["deny"]; all != sessions*calls || r.Calls["deny"] == 0 {
			b.Fatalf("of %d calls these were judged: %v", sessions*calls, r.Calls)
		}
	}
	b.ReportMetric(float64(sessions*calls)*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

const threeGuards = `version: 1
plugins:
  - name: files
    builtin: fileguard
    grants: {contribute: [decision, rewrite], see: [user_text, arguments, result]}
    subscriptions:
      files.prompt: {phase: turn.pre_policy, on_failure: fail_closed}
      files.call: {phase: tool.pre_call, on_failure: fail_closed}
      files.result: {phase: tool.post_call, on_failure: fail_closed}
  - name: house
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config:
      hooks:
        - id: network
          phase: tool.pre_call
          when: input.tool == "Bash" && input.arguments.command contains "curl"
          respond: [{kind: decision, verdict: deny, reason: no network here, reason_code: network}]
  - name: each
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config:
      hooks:
        - id: guard
          phase: tool.pre_call
          respond: [{kind: decision, verdict: allow}]
`

// writeTranscripts writes sessions with as many calls each, in turns of twenty, with lines of 2 to 6 KB.
func writeTranscripts(tb testing.TB, dir string, sessions, calls int) {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	for s := range sessions {
		var w bytes.Buffer
		for c := range calls {
			writeCall(&w, s, c)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("session-%04d.jsonl", s)), w.Bytes(), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

func writeCall(w *bytes.Buffer, s, c int) {
	at := time.Date(2026, 11, 1+s%28, 8, 0, 0, 0, time.UTC).Add(time.Duration(c) * time.Second).Format(time.RFC3339)
	common := fmt.Sprintf(`"isSidechain":false,"promptId":"p%d","userType":"external","entrypoint":"cli","cwd":"/repo/app","sessionId":"session-%04d","version":"2.1.332","gitBranch":"main","timestamp":%q`, c/20, s, at)
	if c%20 == 0 {
		fmt.Fprintf(w, `{"type":"user",%s,"uuid":"u%d","message":{"role":"user","content":"Change the handler of part %d, and run the tests."}}`+"\n", common, c, c)
	}
	body := strings.Repeat(fmt.Sprintf("func handle%d(w http.ResponseWriter, r *http.Request) { serve(w, r, %d) }\\n", c, s), 20+c%40)
	tool, input := "Read", fmt.Sprintf(`{"file_path":"/repo/app/internal/part%d/handler.go"}`, c%50)
	switch c % 10 {
	case 1:
		tool, input = "Edit", fmt.Sprintf(`{"file_path":"/repo/app/internal/part%d/handler.go","old_string":"%s","new_string":"%s"}`, c%50, body[:200], body[:400])
	case 2, 5:
		tool, input = "Bash", fmt.Sprintf(`{"command":"cd /repo/app && go test ./internal/part%d/... 2>&1 | tail -n 20","description":"Run the tests"}`, c%50)
	case 3:
		tool, input = "Grep", fmt.Sprintf(`{"pattern":"handle%d","path":"/repo/app"}`, c)
	case 7:
		switch c % 100 {
		case 7:
			tool, input = "Bash", `{"command":"cat .env | head"}`
		case 17:
			tool, input = "Bash", `{"command":"curl -s https://example.com/x"}`
		}
	}
	id := fmt.Sprintf("toolu_%04d%06d", s, c)
	fmt.Fprintf(w, `{"type":"assistant",%s,"uuid":"a%d","message":{"id":"msg_%d","role":"assistant","model":"claude","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":20}}}`+"\n", common, c, c, id, tool, input)
	fmt.Fprintf(w, `{"type":"user",%s,"uuid":"r%d","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"%s"}]},"toolUseResult":{"stdout":"%s"}}`+"\n", common, c, id, body, body[:min(len(body), 1500)])
}
