package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// begun stands for the handle of the turn that was begun last.
const begun = "the last one"

// withHandle are params with a handle in its place.
func withHandle(params object, handle string) object {
	if params["handle"] != begun {
		return params
	}
	params = maps.Clone(params)
	params["handle"] = handle
	return params
}

// walk calls every method once at least, in an order in which all succeed.
func walk() []struct {
	method string
	params object
	// want are members of the result, by their path.
	want object
} {
	const w = "workspace_id"
	return []struct {
		method string
		params object
		want   object
	}{
		{"workspace/create", object{"id": "w", "name": "One"}, object{"workspace.id": "w", "workspace.name": "One"}},
		{"workspace/create", object{"id": "w", "name": "One"}, object{"workspace.id": "w"}},
		{"workspace/create", object{"id": "v", "name": "Two"}, nil},
		{"workspace/list", object{}, object{"workspaces.0.id": "v", "workspaces.1.id": "w"}},
		{"workspace/rename", object{w: "w", "name": "Eins"}, object{"workspace.name": "Eins"}},
		{"folder/create", object{w: "w", "id": "a", "name": "A"}, object{"folder.id": "a", "folder.parent_id": nil}},
		{"folder/create", object{w: "w", "id": "b", "name": "B", "parent_id": "a"}, object{"folder.parent_id": "a"}},
		{"folder/create", object{w: "w", "id": "c", "name": "C", "parent_id": nil}, object{"folder.parent_id": nil}},
		{"folder/rename", object{w: "w", "folder_id": "b", "name": "Bee"}, object{"folder.name": "Bee"}},
		{"folder/move", object{w: "w", "folder_id": "b", "parent_id": "c"}, object{"folder.parent_id": "c"}},
		{"thread/create", object{w: "w", "id": "t", "title": "T", "folder_id": "b"}, object{"thread.folder_id": "b"}},
		{"thread/rename", object{w: "w", "thread_id": "t", "title": "Tee"}, object{"thread.title": "Tee"}},
		{"thread/move", object{w: "w", "thread_id": "t", "folder_id": "c"}, object{"thread.folder_id": "c"}},
		{"workspace/watch", object{w: "w"}, object{"gap": false}},
		{"thread/agents_doc/save", object{w: "w", "content": "Root.", "expected_version": 0}, object{"doc.version": 1.0, "doc.folder_id": nil, "unchanged": false, "warnings": []any{}}},
		{"thread/agents_doc/save", object{w: "w", "content": "Root.", "expected_version": 1, "save_reason": "autosave"}, object{"unchanged": true}},
		{"thread/agents_doc/save", object{w: "w", "content": "Root twice.", "expected_version": 1}, object{"doc.version": 2.0}},
		{"thread/agents_doc/save", object{w: "w", "folder_id": "c", "content": strings.Repeat("long ", 20)}, object{"doc.status": "active", "warnings.0.code": "longer_than_prompt"}},
		{"thread/agents_doc/get", object{w: "w", "folder_id": "b"}, object{"explicit": nil, "prompt_chars": 50.0, "effective.inherited": true, "effective.source_folder_id": "c", "effective.source_path": []any{"C"}}},
		{"thread/agents_doc/resolve_for_thread", object{w: "w", "thread_id": "t"}, object{"effective.source_folder_id": "c"}},
		{"thread/agents_doc/revisions", object{w: "w", "include_content": true}, object{"revisions.0.version": 2.0, "revisions.1.content": "Root."}},
		{"thread/agents_doc/archive", object{w: "w", "folder_id": "c", "expected_version": 1}, object{"archived": true, "doc.status": "archived", "effective.source_folder_id": nil}},
		{"thread/agents_doc/archived", object{w: "w", "folder_id": "c"}, object{"archived.0.folder_id": "c", "archived.0.content": nil}},
		{"thread/agents_doc/restore", object{w: "w", "folder_id": "c", "version": 1}, object{"doc.status": "active", "doc.version": 3.0}},
		{"thread/tree", object{w: "w", "threads": "all"}, object{"folders.0.id": "a", "threads.0.id": "t", "agents_docs.1.folder_id": "c", "next_cursor": nil}},
		{"turn/compile", object{"turn": object{w: "w", "thread_id": "t", "turn_id": "1", "now": "2026-02-03T04:05:06Z"}, "input": object{"user_text": "hi", "model": "m"}}, object{"manifest.workspace_id": "w", "manifest.turn_id": "1"}},
		{"turn/compile", object{"turn": object{w: "w", "thread_id": "t", "turn_id": "2"}, "input": object{"user_text": "deny me"}}, object{"prompt": nil, "error.code": "denied"}},
		{"session/start", object{"context": object{w: "w", "session_id": "s"}}, object{"phase": "session.start"}},
		{"session/resume", object{"context": object{w: "w", "session_id": "s"}, "state": object{"n": 1}}, object{"phase": "session.resume"}},
		{"turn/begin", object{"turn": object{w: "w", "thread_id": "t", "turn_id": "3", "session_id": "s"}}, object{"idle_seconds": 600.0, "in_session": true}},
		{"turn/dispatch", object{"handle": begun, "phase": "turn.pre_policy", "input": object{"user_text": "hi"}}, object{"phase": "turn.pre_policy", "error": nil}},
		{"turn/compile", object{"handle": begun, "input": object{"user_text": "hi", "tool_calling": true}}, object{"manifest.turn_id": "3", "tools.0.name": "measure", "reminder_texts": []any{}, "error": "absent"}},
		{"tool/call", object{"handle": begun, "tool": "measure", "arguments": object{"n": 1}}, object{"is_error": false, "text": `t{"n":1}`, "changed": false, "refused": "absent", "error": "absent"}},
		{"tool/call", object{"handle": begun, "tool": "measures"}, object{"is_error": true, "refused": "absent", "error.code": "forbidden"}},
		{"tool/check", object{"handle": begun, "tool": "own", "arguments": object{"n": 1}}, object{"arguments.n": 1.0, "paths": []any{}, "refused": "absent"}},
		{"tool/finish", object{"handle": begun, "tool": "own", "arguments": object{"n": 1}, "text": "done", "duration_ms": 2}, object{"text": "done", "is_error": false, "changed": false}},
		{"thread/append", object{"handle": begun, "entries": []object{{"id": "e1", "role": "user", "text": "hi"}, {
			"id": "e2", "role": "assistant", "calls": []object{{"id": "c", "tool": "own", "arguments": object{}}}, "media": []object{{"type": "image/png", "data": "AAAA"}},
		}}}, object{"seqs": []any{0.0, 1.0}}},
		{"thread/summarize", object{"handle": begun, "through": "e1", "text": "They greeted."}, object{"through_seq": 0.0, "post_compaction.phase": "turn.post_compaction"}},
		{"thread/entries", object{w: "w", "thread_id": "t", "limit": 1}, object{"summary": "They greeted.", "entries.0.entry.id": "e2", "entries.0.turn_status": "", "more": true}},
		{"turn/compile", object{"handle": begun, "input": object{"user_text": "hi"}}, object{"conversation.summary": "They greeted.", "conversation.entries.0.id": "e2", "conversation.compaction": "none", "manifest.history.summarized": 1.0}},
		{"turn/report", object{"handle": begun, "changes": []object{{"kind": "tool_name", "id": "a.b", "sent": "a_b"}}, "usage": object{"input_tokens": 7}}, object{}},
		{"turn/end", object{"handle": begun, "end": object{"status": "succeeded"}, "wait": true}, object{"phase": "turn.post_turn", "error": nil}},
		{"session/end", object{"context": object{w: "w", "session_id": "s"}, "reason": "done", "wait": true}, object{"phase": "session.end"}},
		{"phase/dispatch", object{"phase": "turn.pre_policy", "context": object{w: "w"}, "input": object{"user_text": "deny me"}}, object{"phase": "turn.pre_policy", "decision.verdict": "deny"}},
		{"mcp/tools", object{w: "v"}, object{"tools.0.name": "measure"}},
		{"mcp/call", object{w: "v", "thread_id": "m", "tool": "measure", "arguments": object{"n": 1}}, object{"is_error": false, "text": `m{"n":1}`, "refused": "absent"}},
		{"hook/event", object{w: "v", "host": "claude-code", "payload": object{"hook_event_name": "UserPromptSubmit", "session_id": "c", "prompt": "deny me"}}, object{"answer.decision": "block", "answer.reason": "as you like"}},
		{"manifest/list", object{w: "w"}, object{"manifests.0.turn_id": "1", "manifests.1.turn_id": "2", "manifests.2.turn_id": "3"}},
		{"manifest/get", object{"manifest_id": "latest", w: "w", "thread_id": "t"}, object{"turn_id": "3", "kind": "prompt"}},
		{"manifest/explain", object{"manifest_id": "latest", w: "w", "thread_id": "t", "id": "house.guard"}, object{"kind": "subscription", "runs.0.subscription": "house.guard"}},
		{"manifest/find", object{w: "w", "terms": []object{{"kind": "turn", "value": "3"}}}, object{"total": 3.0, "records.0.turn_id": "3"}},
		{"manifest/stats", object{w: "w"}, object{"prompts": 3.0, "blocked": 1.0}},
		{"manifest/overview", object{w: "w", "limit": 2}, object{"rows.0.turn_id": "", "rows.1.turn_id": "3", "more": true}},
		{"manifest/threads", object{w: "w"}, object{"threads.1.thread_id": "t", "next": 0.0}},
		{"manifest/watch", object{w: "w"}, object{}},
		{"manifest/unwatch", object{w: "w"}, object{}},
		{"whoami", object{}, object{"open": true, "all_workspaces": true, "rights.0": "read", "version": "test"}},
		{"manifest/text", object{"manifest_id": "latest", w: "w", "thread_id": "t"}, object{"checked": false, "why": "its texts were not kept: manifest.keep_text in the configuration keeps them"}},
		{"phase/schemas", object{}, object{"phases.0.phase": "session.start", "phases.0.input.type": "object"}},
		{"phase/dispatch", object{"phase": "turn.pre_policy", "context": object{w: "w"}, "input": object{"user_text": "deny me"}, "record": true}, object{"exchanges.0.kind": "dispatch", "exchanges.0.plugin": "house"}},
		{"jobs/list", object{"limit": 1}, object{"jobs.0.id": 1.0, "next": 1.0, "counts.dead": 2.0}},
		{"jobs/list", object{"state": "dead", "after": 1}, object{"jobs.0.id": 2.0, "jobs.0.state": "dead", "next": 0.0}},
		{"jobs/retry", object{"ids": []int{1, 7}}, object{"ids": []any{1.0}}},
		{"jobs/remove", object{"ids": []int{2}}, object{"ids": []any{2.0}}},
		{"memory/list", object{w: "w", "scope": "user"}, object{"items.0.text": "lives in Lisbon", "items.0.scope": "user", "next": ""}},
		{"memory/search", object{w: "w", "query": "Lisbon"}, object{"items.0.score": 1.0}},
		{"memory/forget", object{w: "w", "ids": []string{"m1", "m7"}}, object{"forgotten": []any{"m1"}}},
		{"events/watch", object{}, object{"events.0.code": "crash", "events.0.level": "error"}},
		{"events/unwatch", object{}, object{}},
		{"manifest/diff", object{"a": "latest", "b": "latest"}, object{"same": true}},
		{"manifest/blame", object{"thread_id": "t", "limit": 1}, object{}},
		{"manifest/verify", object{}, object{"ok": true, "checked": 11.0}},
		{"status", object{}, object{"version": "test", "store": "memory", "plugins.0.plugin": "house", "plugins.0.state": "ready"}},
		{"config/reload", object{}, object{"ok": true, "config": "g.yaml", "cause": "call", "actor": "local", "mistakes": []any{}}},
		{"plugin/release", object{"plugin": "sick"}, object{"from": "quarantined", "state": "ready", "breakers": []any{}}},
		{"workspace/unwatch", object{w: "w"}, object{"gap": false}},
		{"thread/delete", object{w: "w", "thread_id": "t"}, object{"thread.id": "t"}},
		{"folder/delete", object{w: "w", "folder_id": "c", "recursive": true}, object{"folder.id": "c"}},
		{"workspace/delete", object{w: "v"}, object{"workspace.id": "v"}},
	}
}

// at finds a value in JSON by a path such as "list.0.name". A path that leads
// nowhere gives the word "absent".
func at(value any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			found, ok := v[step]
			if !ok {
				return "absent"
			}
			value = found
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
				return "absent"
			}
			value = v[i]
		default:
			return "absent"
		}
	}
	return value
}

// everything is a gateway that can do everything.
func everything(t *testing.T) Options {
	t.Helper()
	model, log := storetest.Tree(t, nil), logStore(t)
	events := &Events{}
	events.Observe(runtime.Event{Kind: runtime.EventPlugin, Plugin: "sick", State: string(phases.PluginQuarantined), Code: "crash"})
	return Options{
		Jobs: &fakeJobs{}, Memories: fakeMemories{}, Events: events,
		Tree: model, Engine: engine(t, model, log, sick()), Log: log, PromptChars: 50, Version: "test", StoreName: "memory",
		Conversations: Conversations{Workspaces: []string{"w"}, Log: log, CountTokens: func(s string) int { return len(s) / 4 }},
		Load:          func(context.Context) (*Loaded, error) { return &Loaded{Config: "g.yaml", Apply: applied(nil)}, nil },
	}
}

// TestEveryMethod calls every method over HTTP, a unix socket and a WebSocket: each
// answers with what its schema says, and its params are those of its schema.
func TestEveryMethod(t *testing.T) {
	t.Parallel()

	for name, target := range map[string]func(s *served) string{
		"post":      func(s *served) string { return "http://" + s.addr },
		"unix":      func(s *served) string { return "unix:" + s.unix },
		"websocket": func(s *served) string { return "ws://" + s.addr },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := serve(t, everything(t))
			c := s.connect(t, target(s), "")
			schemas := description(t)
			called, handle := map[string]bool{}, ""
			for _, step := range walk() {
				called[step.method] = true
				step.params = withHandle(step.params, handle)
				raw, bad := c.call(t, step.method, step.params)
				if name == "post" && strings.HasSuffix(step.method, "watch") {
					if bad.code() != rpc.CodeInvalid {
						t.Errorf("%s: %+v, want %s: there is no connection", step.method, bad, rpc.CodeInvalid)
					}
					continue
				}
				if bad != nil {
					t.Fatalf("%s %v: %+v", step.method, step.params, bad)
				}
				checkStep(t, schemas, step.method, step.params, raw, step.want)
				if step.method == "turn/begin" {
					handle = decoded[begunTurn](t, raw).Handle
				}
			}
			for _, m := range s.g.methods() {
				if !called[m.Name] {
					t.Errorf("the walk does not come by %s", m.Name)
				}
			}
		})
	}
}

// checkStep holds a call against the schemas and what its result must have.
func checkStep(t *testing.T, schemas described, method string, params object, raw json.RawMessage, want object) {
	t.Helper()
	given, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	if err := fits(schemas.Methods[method].Params, given); err != nil {
		t.Errorf("%s: params %s: %v", method, given, err)
	}
	if err := fits(schemas.Methods[method].Result, raw); err != nil {
		t.Errorf("%s: result %.300s: %v", method, raw, err)
	}
	result := decoded[any](t, raw)
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(at(result, path), want[path]); diff != "" {
			t.Errorf("%s: %s of %.300s (-got +want):\n%s", method, path, raw, diff)
		}
	}
}

// paramsFor are params that every method of the walk takes, about a workspace.
func paramsFor(method, workspace string) object {
	for _, step := range walk() {
		if step.method != method {
			continue
		}
		p := maps.Clone(step.params)
		for _, inner := range []string{"turn", "context"} {
			if c, ok := p[inner].(object); ok {
				c = maps.Clone(c)
				c["workspace_id"] = workspace
				p[inner] = c
			}
		}
		switch {
		case method == "workspace/create":
			p["id"] = workspace
		case p["workspace_id"] != nil:
			p["workspace_id"] = workspace
		}
		return p
	}
	return nil
}

// TestForeignWorkspace calls every method with tokens that are bound to another
// workspace, or lack the right: the answer is as if there were no such workspace,
// also where there is one.
func TestForeignWorkspace(t *testing.T) {
	t.Parallel()

	o := everything(t)
	s := serve(t, o.with(
		token("all", []string{"*"}, rpc.Rights()...),
		token("other", []string{"v"}, rpc.Rights()...),
		token("powerless", []string{"*"}),
	))
	workspace(t, o.Tree, "w")
	workspace(t, o.Tree, "v")
	owner := s.dial(t, "all")
	turn := object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": "1"}}
	do[any](t, owner, "turn/compile", turn)
	handles := map[string]string{"w": do[begunTurn](t, owner, "turn/begin", turn).Handle, "no-such": "no-such"}
	other, powerless := s.dial(t, "other"), s.dial(t, "powerless")
	// Those that speak of no workspace, or find out by themselves.
	own := map[string]string{
		"workspace/create": rpc.CodeUnauthorized, "workspace/list": "", "status": "", "whoami": "",
		"config/reload": rpc.CodeUnauthorized, "plugin/release": rpc.CodeUnauthorized, "phase/schemas": "", // they are about all workspaces, as are these:
		"jobs/list": rpc.CodeUnauthorized, "jobs/retry": rpc.CodeUnauthorized, "jobs/remove": rpc.CodeUnauthorized,
		"events/watch": rpc.CodeUnauthorized, "events/unwatch": rpc.CodeUnauthorized,
		"manifest/diff": rpc.CodeUnauthorized, "manifest/blame": rpc.CodeUnauthorized, "manifest/verify": rpc.CodeUnauthorized, // the walk gives them no workspace
	}
	for _, m := range s.g.methods() {
		for _, id := range []string{"w", "no-such"} {
			want, special := own[m.Name]
			if !special {
				want = rpc.CodeNotFound
			}
			params, message := withHandle(paramsFor(m.Name, id), handles[id]), fmt.Sprintf("there is no workspace %q", id)
			if params["handle"] != nil && want == rpc.CodeNotFound {
				want, message = rpc.CodeTurnUnknown, turnUnknown(handles[id]).Error()
			}
			_, bad := other.call(t, m.Name, params)
			if bad.code() != want {
				t.Errorf("%s of %s by a foreign token: %+v, want %q", m.Name, id, bad, want)
			}
			if bad != nil && (want == rpc.CodeNotFound || want == rpc.CodeTurnUnknown) && bad.Message != message {
				t.Errorf("%s of %s: %q tells more than that it is not there", m.Name, id, bad.Message)
			}
		}
		if _, bad := powerless.call(t, m.Name, paramsFor(m.Name, "w")); m.Right != rpc.NoRight && bad.code() != rpc.CodeUnauthorized {
			t.Errorf("%s without its right: %+v", m.Name, bad)
		}
	}
	if got := do[workspacesResult](t, other, "workspace/list", nil); len(got.Workspaces) != 1 || got.Workspaces[0].ID != "v" {
		t.Errorf("a bound token lists %v", got.Workspaces)
	}
}

// TestForeignManifest: a token that is bound to a workspace sees its manifests and
// no others, by whatever name it asks.
func TestForeignManifest(t *testing.T) {
	t.Parallel()

	o := everything(t)
	s := serve(t, o.with(token("all", []string{"*"}, rpc.Rights()...), token("bound", []string{"v"}, rpc.ReadRight)))
	workspace(t, o.Tree, "w")
	workspace(t, o.Tree, "v")
	all, bound := s.post(t, "all"), s.post(t, "bound")
	ids := map[string]string{}
	for _, w := range []string{"w", "v"} {
		turn := object{"workspace_id": w, "thread_id": "t", "turn_id": "1"}
		got := do[struct{ Manifest manifest.Manifest }](t, all, "turn/compile", object{"turn": turn})
		ids[w] = got.Manifest.ManifestID
	}
	for _, tt := range []struct {
		name, method string
		params       object
		want         string
	}{
		{"its own", "manifest/get", object{"manifest_id": ids["v"], "workspace_id": "v"}, ""},
		{"its own, the latest", "manifest/get", object{"manifest_id": "latest", "workspace_id": "v"}, ""},
		{"another's in its own", "manifest/get", object{"manifest_id": ids["w"], "workspace_id": "v"}, rpc.CodeNotFound},
		{"another's in another", "manifest/get", object{"manifest_id": ids["w"], "workspace_id": "w"}, rpc.CodeNotFound},
		{"without a workspace", "manifest/get", object{"manifest_id": ids["v"]}, rpc.CodeUnauthorized},
		{"shortened", "manifest/get", object{"manifest_id": ids["v"][:20], "workspace_id": "v"}, rpc.CodeInvalid},
		{"shortened, one that is not there", "manifest/get", object{"manifest_id": "7ZZZ", "workspace_id": "v"}, rpc.CodeInvalid},
		{"compared with another's", "manifest/diff", object{"a": ids["v"], "b": ids["w"], "workspace_id": "v"}, rpc.CodeNotFound},
		{"of another thread", "manifest/get", object{"manifest_id": ids["v"], "workspace_id": "v", "thread_id": "u"}, rpc.CodeNotFound},
	} {
		if _, bad := bound.call(t, tt.method, tt.params); bad.code() != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, bad, tt.want)
		}
	}
	if got := do[struct{ Manifests []manifest.Index }](t, bound, "manifest/list", object{"workspace_id": "v"}); len(got.Manifests) != 1 || got.Manifests[0].ManifestID != ids["v"] {
		t.Errorf("a bound token lists %v", got.Manifests)
	}
	if got := do[store.SearchResult](t, bound, "manifest/find", object{"workspace_id": "v", "terms": []object{{"kind": "kind", "value": "prompt"}}}); got.Total != 1 || got.Records[0].ManifestID != ids["v"] {
		t.Errorf("a bound token finds %+v", got)
	}
	if got := do[manifest.Verdict](t, bound, "manifest/verify", object{"workspace_id": "v"}); !got.OK || got.Checked != 1 {
		t.Errorf("a bound token verifies %+v", got)
	}
	// Who sees all may shorten, as on the command line.
	got := do[manifest.Manifest](t, all, "manifest/get", object{"manifest_id": strings.ToLower(ids["w"][:25])})
	if got.ManifestID != ids["w"] && got.ManifestID != ids["v"] {
		t.Errorf("shortened: %s", got.ManifestID)
	}
}

// TestActor: who acts is the token's name; only a gateway without tokens believes
// what is said.
func TestActor(t *testing.T) {
	t.Parallel()

	locked := serve(t, Options{}.with(token("ada", []string{"*"}, rpc.Rights()...))).post(t, "ada")
	open := serve(t, Options{}).post(t, "")
	for _, tt := range []struct {
		name  string
		c     *caller
		given any
		want  string
		code  string
	}{
		{"a token", locked, nil, "ada", ""},
		{"a token that says who it is", locked, "ada", "ada", ""},
		{"a token that says it is another", locked, "bob", "", rpc.CodeInvalid},
		{"open", open, nil, openActor, ""},
		{"open, said", open, "bob", "bob", ""},
		{"open, no name", open, "a\nb", "", rpc.CodeInvalid},
	} {
		id := "w" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return '-'
		}, tt.name)
		do[any](t, tt.c, "workspace/create", object{"id": id, "name": id})
		params := object{"workspace_id": id, "content": "x"}
		if tt.given != nil {
			params["actor"] = tt.given
		}
		raw, bad := tt.c.call(t, "thread/agents_doc/save", params)
		if bad.code() != tt.code {
			t.Errorf("%s: %+v, want %q", tt.name, bad, tt.code)
		}
		if bad == nil {
			if got := decoded[savedResult](t, raw).Doc; got.CreatedBy != tt.want || got.UpdatedBy != tt.want {
				t.Errorf("%s: created by %q, updated by %q, want %q", tt.name, got.CreatedBy, got.UpdatedBy, tt.want)
			}
		}
		// Methods that read take it too.
		params = object{"workspace_id": id}
		if tt.given != nil {
			params["actor"] = tt.given
		}
		if _, bad := tt.c.call(t, "thread/tree", params); bad.code() != tt.code {
			t.Errorf("%s, reading: %+v, want %q", tt.name, bad, tt.code)
		}
	}
}
