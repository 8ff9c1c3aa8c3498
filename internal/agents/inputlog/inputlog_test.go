package inputlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/agents/inputlog"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

var shared storetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// house denies calls with .env, asks about those with rm, hides hunter2 in results, and withholds those with boom.
func house() *sdk.Plugin {
	return &sdk.Plugin{Name: "house", Version: "1", Hooks: []sdk.Hook{
		{
			Name: "guard", Role: phases.RoleValidate, Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"arguments"}, Timeout: time.Minute,
			ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				switch arguments := string(in.Arguments); {
				case strings.Contains(arguments, ".env"):
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "it is secret"})
				case strings.Contains(arguments, "rm "):
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAsk, Reason: "is that wise?"})
				}
				return nil, nil
			},
		},
		{
			Name: "redact", Role: phases.RoleTransform, Kinds: []phases.Kind{phases.KindRewrite}, Needs: []string{"result"}, Timeout: time.Minute,
			OnFailure: phases.OnFailure{Default: phases.FailClosed},
			ToolPostCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				if strings.Contains(in.Result.Text, "boom") {
					return nil, errors.New("boom")
				}
				if !strings.Contains(in.Result.Text, "hunter2") {
					return nil, nil
				}
				return sdk.Reply(&phases.Rewrite{Path: "", Value: []byte(`"a ***"`)})
			},
		},
	}}
}

// start starts an engine with the house rules that records in a store.
func start(t testing.TB, s *store.Store, keepInputs string) *runtime.Engine {
	t.Helper()
	all := []string{"*"}
	cfg := &config.Config{Version: 1, Manifest: config.Manifest{KeepInputs: keepInputs}}
	cfg.Budgets.Turn.Time = phases.Duration(time.Hour)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	for _, phase := range []phases.Phase{phases.PrePolicy, phases.ToolPreCall, phases.ToolPostCall} {
		cfg.Budgets.Phases[phase] = config.PhaseBudget{Time: phases.Duration(time.Minute)}
	}
	cfg.Plugins = []config.Plugin{{Name: "house", Grants: phases.Grants{Contribute: all, See: all}}}
	clock := storetest.NewClock(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	o := runtime.Options{
		Logger: slog.New(slog.DiscardHandler), InProcess: map[string]runtime.Plugin{"house": house()},
		Now: func() time.Time { clock.Add(time.Second); return clock.Now() },
	}
	if s != nil {
		o.Sink = s
	}
	eng, err := runtime.New(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close(context.WithoutCancel(t.Context())) })
	return eng
}

// claude runs events of Claude Code through a bridge, in a workspace.
func claude(t *testing.T, eng *runtime.Engine, workspace string, payloads ...string) {
	t.Helper()
	b := bridge.New(eng, time.Now)
	for _, payload := range payloads {
		event, more, _ := strings.Cut(payload, " ")
		e, err := agents.Decode("claude-code", fmt.Appendf(nil, `{"hook_event_name":%q,"session_id":"s","cwd":"/src"%s}`, event, more))
		if err != nil {
			t.Fatal(err)
		}
		where := e.Place(workspace)
		where.Actor = phases.Actor{Kind: "user", ID: "ada"}
		if _, err := b.Handle(t.Context(), where, &e); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func call(id, tool, arguments string) string {
	return fmt.Sprintf(`,"tool_use_id":%q,"tool_name":%q,"tool_input":%s`, id, tool, arguments)
}

// told is what a thread's records say, a line each.
func told(t *testing.T, s *store.Store, workspace, thread string, since time.Time) (lines []string, lacks inputlog.Lacks) {
	t.Helper()
	for said, err := range inputlog.Read(t.Context(), s, workspace, thread, since, &lacks) {
		if err != nil {
			t.Fatal(err)
		}
		e := &said.Event
		line := strings.Join(strings.Fields(fmt.Sprint(e.Step, " ", e.Host, " ", e.SessionID, " ", e.ParentID, " ", e.AgentID, " ", e.Dir, " ", e.Text, " ", e.Call.Tool, " ", string(e.Call.Arguments), " ", e.Result, " ", said.Became, " ", said.By)), " ")
		if e.Call.ID != "" {
			line += " #" + e.Call.ID
		}
		if said.Unknown > 0 {
			line += fmt.Sprintf(" !%d", said.Unknown)
		}
		if len(line) > 200 {
			line = fmt.Sprintf("%s… (%d bytes)", line[:60], len(line))
		}
		lines = append(lines, line)
	}
	return lines, lacks
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func open(t testing.TB, dsn string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dsn, store.Options{LockTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestRead: the log tells sessions as they were, of agents and of other hosts, and what it cannot tell it counts; an engine
// judges them again alike.
func TestRead(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		read, env, rm := `{"file_path":"/src/a"}`, `{"command":"cat .env"}`, `{"command":"rm a"}`
		claude(t, start(t, s, "calls"), "w",
			`SessionStart ,"source":"startup"`,
			`UserPromptSubmit ,"prompt":"look","prompt_id":"1"`,
			"PreToolUse "+call("c1", "Read", read), "PreToolUse "+call("c2", "Read", read),
			"PostToolUse "+call("c2", "Read", read)+`,"tool_response":"two"`,
			"PostToolUseFailure "+call("c1", "Read", read)+`,"error":"one"`,
			"PreToolUse "+call("c3", "Bash", env),
			"PreToolUse "+call("c4", "Bash", rm), "PermissionRequest "+strings.Replace(call("", "Bash", rm), `"tool_use_id":"",`, "", 1),
			"PostToolUse "+call("c4", "Bash", rm)+`,"tool_response":"the word is hunter2"`,
			`SubagentStart ,"agent_id":"a","agent_type":"Explore"`,
			"PreToolUse "+call("c5", "Read", read)+`,"agent_id":"a"`, "PostToolUse "+call("c5", "Read", read)+`,"tool_response":"five","agent_id":"a"`,
			`Stop ,"last_assistant_message":"never kept"`,
			`UserPromptSubmit ,"prompt":"again <&>","prompt_id":"2"`,
			"PostToolUse "+call("c6", "Read", read)+`,"tool_response":"`+strings.Repeat("six ", 1<<16)+`"`,
			"PostToolUse "+call("c7", "Read", read)+`,"tool_response":"boom"`,
		)
		got, lacks := told(t, s, "w", "s", time.Time{})
		check(t, "the agent's session", got, []string{
			"session_start claude-code s /src",
			"prompt claude-code s /src look",
			`tool_call claude-code s /src Read {"file_path":"/src/a"} #c1`,
			`tool_call claude-code s /src Read {"file_path":"/src/a"} #c2`,
			`tool_result claude-code s /src Read {"file_path":"/src/a"} two ran #c2`,
			`tool_result claude-code s /src Read {"file_path":"/src/a"} one failed #c1`,
			`tool_call claude-code s /src Bash {"command":"cat .env"} #c3`,
			`tool_result claude-code s /src Bash {"command":"cat .env"} refused house.guard #c3`,
			`tool_call claude-code s /src Bash {"command":"rm a"} #c4`,
			`tool_result claude-code s /src Bash {"command":"rm a"} a *** ran #c4`,
			"stop claude-code s /src",
			"prompt claude-code s /src again <&>",
			`tool_call claude-code s /src Read {"file_path":"/src/a"} #c6`,
			`tool_result claude-code s /src Read {"file_path":"/src/a"} s… (262210 bytes)`,
			`tool_call claude-code s /src Read {"file_path":"/src/a"} #c7`,
			`tool_result claude-code s /src Read {"file_path":"/src/a"} ran #c7 !1`,
			"stop claude-code s /src",
		})
		check(t, "what it lacks", lacks, inputlog.Lacks{Omitted: 1}) // the result that was withheld
		got, _ = told(t, s, "w", "s/a", time.Time{})
		check(t, "the subagent's", got, []string{
			"subagent claude-code s a /src", `tool_call claude-code s a /src Read {"file_path":"/src/a"} #c5`,
			`tool_result claude-code s a /src Read {"file_path":"/src/a"} five ran #c5`,
		})
		again := judgeAgain(t, s, "w", "s")
		check(t, "what the house rules decide again", again, []string{`deny {"command":"cat .env"}`, `ask {"command":"rm a"}`})
		var threads []string
		for th, err := range inputlog.Threads(t.Context(), s, "w", time.Time{}) {
			threads = append(threads, fmt.Sprint(th.ThreadID, err))
		}
		check(t, "threads", threads, []string{"s/a<nil>", "s<nil>"})
		wantGood(t, s)
	})
}

// judgeAgain has what a thread says judged by an engine that keeps nothing.
func judgeAgain(t *testing.T, s *store.Store, workspace, thread string) (decided []string) {
	t.Helper()
	b := bridge.New(start(t, nil, ""), time.Now)
	for said, err := range inputlog.Read(t.Context(), s, workspace, thread, time.Time{}, &inputlog.Lacks{}) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.Handle(t.Context(), said.Event.Place(workspace), &said.Event)
		if err != nil {
			t.Fatal(err)
		}
		if out.Verdict != "" {
			decided = append(decided, string(out.Verdict)+" "+string(said.Event.Call.Arguments))
		}
	}
	if _, err := b.Handle(t.Context(), phases.Context{WorkspaceID: workspace, ThreadID: thread}, &agent.Event{SessionID: thread, Name: "compacted", Step: agent.StepCompacted}); err != nil {
		t.Error(err) // an event of no agent
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return decided
}

func wantGood(t *testing.T, s *store.Store) {
	t.Helper()
	got, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
	if err != nil || !got.OK || got.Checked == 0 {
		t.Errorf("verdict %+v, %v", got, err)
	}
}

// TestHosts: a host that is no agent, and gives its calls no ids, has its sessions told in pages, from the turn on that a time
// lies in.
func TestHosts(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		const turns = 50 // of a record or more each
		var middle time.Time
		eng := start(t, s, "calls")
		for n := range turns {
			turn, err := loop.Begin(t.Context(), eng, phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: strconv.Itoa(n), Dir: "/src"}, loop.Options{Input: runtime.CompileInput{UserText: "do " + strconv.Itoa(n)}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // twice the same
				c := loop.Call{Tool: "write", Arguments: fmt.Appendf(nil, `{"n":%d}`, n), Paths: []string{"/src/b"}}
				if _, err := turn.RunTool(t.Context(), c, func(context.Context, loop.Call) (string, bool, error) { return "done", false, nil }); err != nil {
					t.Fatal(err)
				}
			}
			if err := turn.Done(t.Context(), "", nil); err != nil {
				t.Fatal(err)
			}
		}
		got, lacks := told(t, s, "w", "t", time.Time{})
		if want := 1 + turns*6; len(got) != want || lacks != (inputlog.Lacks{}) {
			t.Fatalf("%d lines, want %d; it lacks %+v:\n%s", len(got), want, lacks, strings.Join(got, "\n"))
		}
		check(t, "the last turn", mapped(got[len(got)-6:], func(line string) string { line, _, _ = strings.Cut(line, " #"); return line }), []string{
			"prompt t /src do 49", `tool_call t /src write {"n":49}`, `tool_result t /src write {"n":49} done ran`, `tool_call t /src write {"n":49}`,
			`tool_result t /src write {"n":49} done ran`, "stop t /src",
		})
		for said, err := range inputlog.Read(t.Context(), s, "w", "t", time.Time{}, &lacks) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(said.Event.Text, "do 40") {
				middle = said.Time.Add(2 * time.Second)
			}
			if c := said.Event.Call; c.Tool != "" && fmt.Sprint(c.Paths) != "[/src/b]" {
				t.Errorf("paths %v", c.Paths)
			}
		}
		got, _ = told(t, s, "w", "t", middle)
		check(t, "what is told since then", got[1], "prompt t /src do 40")
		if got, _ := told(t, s, "w", "t", middle.Add(time.Hour)); got != nil {
			t.Errorf("in the future: %q", got)
		}
		judgeAgain(t, s, "w", "t")
	})
}

func mapped(list []string, f func(string) string) (out []string) {
	for _, s := range list {
		out = append(out, f(s))
	}
	return out
}

// TestGone: inputs are held, erased and pruned as texts are, of one workspace apart from another one, and are then in no file;
// what cannot be told is counted.
func TestGone(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		session := func(workspace string) []string {
			return []string{
				`UserPromptSubmit ,"prompt":"heron-` + workspace + `-prompt","prompt_id":"1"`,
				"PreToolUse " + call("c1", "Read", `{"file_path":"/heron-`+workspace+`-arguments"}`),
				"PostToolUse " + call("c1", "Read", `{"file_path":"/heron-`+workspace+`-arguments"}`) + `,"tool_response":"heron-` + workspace + `-result"`,
				`Stop ,"last_assistant_message":"heron-` + workspace + `-answer"`,
			}
		}
		claude(t, start(t, s, "off"), "w", session("unkept")...)
		eng := start(t, s, "calls")
		claude(t, eng, "w", session("w")...)
		claude(t, eng, "w", "PreToolUse "+call("c2", "Write", `{"content":"`+strings.Repeat("long ", 300_000)+`"}`))
		claude(t, eng, "v", session("v")...)
		before, lacks := told(t, s, "v", "s", time.Time{})
		if len(before) != 5 || lacks != (inputlog.Lacks{}) {
			t.Errorf("the other workspace says %q, and lacks %+v", before, lacks)
		}
		got, lacks := told(t, s, "w", "s", time.Time{})
		check(t, "what is lacking", lacks, inputlog.Lacks{NotKept: 1, Omitted: 1})
		if !strings.HasSuffix(got[0], " !1") || !strings.HasSuffix(got[len(got)-1], " !1") {
			t.Errorf("what is lacking is not said: %q", got)
		}
		hold := store.Hold{Scope: store.Scope{WorkspaceID: "w"}, By: "legal", Reason: "case 9", At: time.Now()}
		if err := s.Hold(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		erasing := store.Erasing{Scope: store.Scope{WorkspaceID: "w", Actor: "user:ada"}, By: "ada", Reason: "she asked"}
		if _, err := s.Erase(t.Context(), erasing); !store.HasCode(err, store.CodeHeld) {
			t.Errorf("erased what is held: %v", err)
		}
		if _, err := s.Prune(t.Context(), store.Retention{Age: time.Nanosecond}, time.Now().AddDate(10, 0, 0)); err != nil {
			t.Fatal(err)
		}
		held, _ := told(t, s, "w", "s", time.Time{})
		check(t, "what is held", held, got)
		if len(kept(t, s, "v")) > 0 {
			t.Error("what was not held is still there")
		}
		if err := s.Release(t.Context(), hold.Scope); err != nil {
			t.Fatal(err)
		}
		claude(t, eng, "v", session("v")...)
		if _, err := s.Erase(t.Context(), erasing); err != nil {
			t.Fatal(err)
		}
		got, lacks = told(t, s, "w", "s", time.Time{})
		check(t, "what is told of what was erased", got, []string{" !5"})
		check(t, "what is lacking of it", lacks, inputlog.Lacks{NotKept: 1, Omitted: 1, Erased: 3})
		if after := kept(t, s, "v"); len(after) != 5 {
			t.Errorf("the other workspace says %q", after)
		}
		wantGood(t, s)
		searchFiles(t, dsn, "heron-w-", "heron-unkept-", "-answer")
		storetest.Exec(t, dsn, "DELETE FROM text_uses WHERE text_id = (SELECT id FROM texts WHERE text = 'heron-v-result')")
		if got, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{}); err != nil || got.OK || got.FirstBad.Reason != manifest.BadText {
			t.Errorf("somebody has taken a result away: %+v, %v", got, err)
		}
	})
}

func kept(t *testing.T, s *store.Store, workspace string) []string {
	t.Helper()
	lines, _ := told(t, s, workspace, "s", time.Time{})
	return lines
}

// searchFiles wants none of the words in the files of a SQLite database, and another workspace's in them.
func searchFiles(t *testing.T, dsn string, words ...string) {
	t.Helper()
	path, isFile := strings.CutPrefix(dsn, "sqlite:")
	if !isFile {
		return
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	if !strings.Contains(all.String(), "heron-v-result") {
		t.Error("the search is no search")
	}
	for _, word := range words {
		if strings.Contains(all.String(), word) {
			t.Errorf("%q is still in a file", word)
		}
	}
}
