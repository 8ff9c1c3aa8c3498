//go:build unix

package agents_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/manifest"
)

const (
	talk     = "01a22545-f01a-73b3-9860-8a1394c29514" // is compacted
	subagent = "01a22545-fb0f-7cb2-afea-ddffd8acb239"
)

// rollouts makes a CODEX_HOME with a directory of sessions, and returns that.
func rollouts(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	dir := filepath.Join(home, "sessions")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func rolloutOf(t *testing.T, id string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "home", ".codex", "sessions", "*", "*", "*", "rollout-*"+id+".jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRequestsOfRollouts: what Codex has written so far is read once, up to what the model has said, and comes to the same as if it
// is read at the end.
func TestRequestsOfRollouts(t *testing.T) {
	dir := rollouts(t)
	for id, want := range wantRollouts {
		t.Run(id, func(t *testing.T) { testRollout(t, dir, id, want) })
	}
}

func testRollout(t *testing.T, dir, id, want string) {
	t.Helper()
	codex := agents.Lookup("codex")
	file, data := filepath.Join(dir, id+".jsonl"), rolloutOf(t, id)
	e := agent.Event{Agent: codex, SessionID: id, Kept: file}
	var (
		read    agent.Reading
		parts   []compiler.RequestPart
		entries int
		lines   = bytes.SplitAfter(data, []byte("\n"))
	)
	for i := range lines {
		half := len(lines[i]) / 2
		if err := os.WriteFile(file, append(bytes.Join(lines[:i], nil), lines[i][:half]...), 0o600); err != nil || i == 0 {
			continue
		}
		r, next := codex.ReadRequest(&e, read)
		if r == nil {
			t.Fatal(i, next.Lost)
		}
		if same := r.History.Same; same < entries {
			parts = nil // it was compacted
		} else if len(r.Messages) > 0 && r.Messages[0].Message != entries {
			t.Errorf("line %d: the message %d stands behind %d", i, r.Messages[0].Message, entries)
		}
		read, parts, entries = next, append(parts, r.Messages...), r.History.Entries
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Facts = nil
	whole, last := codex.ReadRequest(&e, agent.Reading{})
	if whole == nil || e.Provider != "fake" {
		t.Fatal(e.Provider, last.Lost)
	}
	if diff := cmp.Diff(parts, whole.Messages); diff != "" || !reflect.DeepEqual(read.History, last.History) || whole.History.Hash == "" {
		t.Errorf("%+v and %+v, piece by piece and at once (-/+)\n%s", read.History, last.History, diff)
	}
	if diff := cmp.Diff(e.Facts, []manifest.HostFact{{Name: "not_seen", Value: "tools; what Codex leaves out of base_instructions"}, {Name: "read_from", Value: "rollout"}}); diff != "" {
		t.Error(diff)
	}
	var got strings.Builder
	for _, p := range append(whole.System, whole.Messages...) {
		fmt.Fprintf(&got, "%d %s %s %s %s %.20q\n", p.Message, p.Role, p.Kind, p.ID, p.Owner, p.Text)
	}
	if diff := cmp.Diff(got.String(), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

var wantRollouts = map[string]string{
	talk: `0 developer host_skills.instructions  codex "<skills_instructions"
0 developer permissions.instructions  codex "<permissions instruc"
1 user environments.environment_context  codex "<environment_context"
2 user user.text  user "Leave the marker."
3 user compaction.summary  codex "Another language mod"
4 user user.text  user "Go on."
`,
	"01a22545-f771-7fb1-8a91-5ae4303cfe8d": `0 developer host_skills.instructions  codex "<skills_instructions"
0 developer permissions.instructions  codex "<permissions instruc"
1 user environments.environment_context  codex "<environment_context"
2 user user.text  user "Leave the marker."
3 assistant function_call call_0_0 model "exec_command {\"cmd\":"
4 tool function_call_output call_0_0 codex "Chunk ID: 799c86\nWal"
5 assistant function_call call_1_0 model "exec_command {\"cmd\":"
6 assistant function_call call_1_1 model "exec_command {\"cmd\":"
7 assistant function_call call_1_2 model "exec_command {\"cmd\":"
8 tool function_call_output call_1_0 codex "Chunk ID: be74b1\nWal"
9 tool function_call_output call_1_1 codex "Chunk ID: 7a4962\nWal"
10 tool function_call_output call_1_2 codex "Wall time: 0.0000 se"
11 assistant function_call call_2_0 model "mcp__probe__tell {}"
12 tool function_call_output call_2_0 mcp:probe "Wall time: 0.0019 se"
13 assistant function_call call_3_0 model "multi_agent_v1__spaw"
14 tool function_call_output call_3_0 codex "{\"agent_id\":\"01a2254"
15 assistant function_call call_4_0 model "multi_agent_v1__wait"
16 tool function_call_output call_4_0 codex "{\"status\":{\"01a22545"
17 user multi_agent.subagent_notification  codex "<subagent_notificati"
`,
}

// TestRolloutsThatAreNotRead: only a file of the session below Codex's directory is read, nothing is waited for, and what a
// conversation is not any more is not said.
func TestRolloutsThatAreNotRead(t *testing.T) {
	dir, codex := rollouts(t), agents.Lookup("codex")
	in := func(name string) string { return filepath.Join(dir, name) }
	data := rolloutOf(t, talk)
	first, _, _ := bytes.Cut(data, []byte("\n"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(filepath.Dir(dir), "auth.json")
	for path, text := range map[string][]byte{
		in("own.jsonl"): data, in("empty.jsonl"): nil, in("begun.jsonl"): first, secret: data,
		in("rolled.jsonl"): append(bytes.Clone(data), `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`+"\n"...),
	} {
		must(os.WriteFile(path, text, 0o600))
	}
	must(os.WriteFile(in("long.jsonl"), append(slices.Clip(first), '\n'), 0o600))
	must(os.Truncate(in("long.jsonl"), 17<<20))
	must(os.Symlink(secret, in("link.jsonl")))
	must(os.Symlink("own.jsonl", in("inside.jsonl")))
	must(os.Mkdir(in("directory.jsonl"), 0o700))
	must(syscall.Mkfifo(in("pipe.jsonl"), 0o600))
	for name, want := range map[string]string{
		"own.jsonl": "", "inside.jsonl": "", "empty.jsonl": "EOF", "begun.jsonl": "EOF", "rolled.jsonl": "", "link.jsonl": "escapes", "../auth.json": "escapes",
		"gone.jsonl": "no such file", "directory.jsonl": "not a regular file", "pipe.jsonl": "not a regular file", "long.jsonl": "more than",
	} {
		e := agent.Event{Agent: codex, SessionID: talk, Kept: in(name)}
		if r, read := codex.ReadRequest(&e, agent.Reading{}); (r != nil) != (want == "") || !strings.Contains(read.Lost, want) {
			t.Errorf("%s: %q instead of %q", name, read.Lost, want)
		}
	}
	for _, e := range []agent.Event{{SessionID: "s"}, {SessionID: talk, AgentID: "a"}} {
		e.Agent, e.Kept = codex, in("own.jsonl")
		if r, read := codex.ReadRequest(&e, agent.Reading{}); r != nil || !strings.Contains(read.Lost, "is of the session") {
			t.Errorf("of another session: %+v", read)
		}
	}
	must(os.WriteFile(in("sub.jsonl"), rolloutOf(t, subagent), 0o600))
	e := agent.Event{Agent: codex, SessionID: "s", AgentID: subagent, Kept: in("sub.jsonl")}
	if r, read := codex.ReadRequest(&e, agent.Reading{}); r == nil {
		t.Errorf("of a subagent: %s", read.Lost)
	}
}
