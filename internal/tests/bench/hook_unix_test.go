//go:build unix

package bench

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hookPayload is what Codex gives a hook for a call.
const hookPayload = `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","turn_id":"u","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c"}`

// The same guard in languages that hooks are written in: it denies one command, and so has nothing to say here.
const (
	pythonGuard = `import json, sys
payload = json.load(sys.stdin)
if "rm -rf" in payload["tool_input"].get("command", ""):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}))
`
	nodeGuard = `const payload = JSON.parse(require("fs").readFileSync(0, "utf8"))
if ((payload.tool_input.command ?? "").includes("rm -rf"))
  console.log(JSON.stringify({hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "no"}}))
`
)

// BenchmarkHookProcess runs what an agent starts for a call, from the start of the process to its end, each in turn, and
// reports the fastest and the median in ms: grapnel-hook with a gateway that runs, the same guard as a script, a Go
// program that does nothing, and /bin/true, which is the start of a process alone. GRAPNEL_BENCH_OLD lists other builds of
// grapnel-hook to compare with.
func BenchmarkHookProcess(b *testing.B) {
	dir := b.TempDir()
	socket, payload := filepath.Join(dir, "s"), write(b, dir, "payload", hookPayload)
	env := []string{"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "PATH=" + os.Getenv("PATH")}
	const strip = "-ldflags=-s -w"
	config := write(b, dir, "grapnel.yaml", "version: 1\nserve: {roots: [/]}\n")
	gateway(b, env, build(b, dir, "grapnel", "../../../cmd/grapnel", strip), "serve", "--config", config, "--socket", socket)
	hookArgs := []string{"--no-start", "--socket", socket, "codex", "PreToolUse"}
	commands := [][]string{{"/bin/true"}, {hello(b, dir)}, append([]string{build(b, dir, "grapnel-hook", "../../../cmd/grapnel-hook", strip)}, hookArgs...)}
	for _, old := range filepath.SplitList(os.Getenv("GRAPNEL_BENCH_OLD")) {
		commands = append(commands, append([]string{old}, hookArgs...))
	}
	python := interpreter("python3", "-c", "import sys; print(sys.executable)")
	for _, script := range [][]string{{python, "python3-guard", pythonGuard}, {interpreter("node", "-e", "console.log(process.execPath)"), "node-guard", nodeGuard}} {
		if _, err := exec.LookPath(script[0]); err == nil {
			commands = append(commands, []string{script[0], write(b, dir, script[1], script[2])})
		}
	}
	took := make([][]time.Duration, len(commands))
	for range max(b.N, 21) {
		for i, command := range commands {
			took[i] = append(took[i], runHook(b, env, payload, command))
		}
	}
	for i, all := range took {
		slices.Sort(all)
		name := filepath.Base(commands[i][0])
		b.ReportMetric(float64(all[0].Microseconds())/1000, name+"-min-ms")
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
	}
	b.ReportMetric(0, "ns/op") // a run of all: not a time of anything
}

// gateway starts a gateway that ends with the benchmark.
func gateway(b *testing.B, env []string, program string, args ...string) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	var errs strings.Builder
	cmd.Env, cmd.Stderr = env, &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "listening on ") {
		b.Fatalf("the gateway did not start: %q, %v", line, errors.Join(err, cmd.Wait(), errors.New(errs.String())))
	}
}

// runHook runs a hook once.
func runHook(b *testing.B, env []string, payload string, command []string) time.Duration {
	b.Helper()
	in, err := os.Open(payload)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // only read
	cmd := exec.CommandContext(b.Context(), command[0], command[1:]...)
	cmd.Env, cmd.Stdin = env, in
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v", command, err)
	}
	return time.Since(begun)
}
