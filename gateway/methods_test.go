package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
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

// visit is a call, and members of its result by their path.
type visit struct {
	method       string
	params, want object
}

// walk calls every method once at least, in an order in which all succeed.
func walk(t *testing.T) (all []visit) {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile("testdata/methods.txt"))(t))) {
		method, rest, _ := strings.Cut(line, " ")
		v, values := visit{method: method}, json.NewDecoder(strings.NewReader(rest))
		if err := errors.Join(values.Decode(&v.params), values.Decode(&v.want)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, v)
	}
	return all
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
		Jobs: &fakeJobs{}, Memories: fakeMemories{}, Events: events, Backtests: fakeBacktests{},
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
			for _, step := range walk(t) {
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
	given := must(json.Marshal(params))(t)
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
func paramsFor(t *testing.T, method, workspace string) object {
	for _, step := range walk(t) {
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
		"backtest/configs": rpc.CodeUnauthorized, "backtest/run": rpc.CodeUnauthorized, "backtest/cancel": rpc.CodeUnauthorized,
		"manifest/diff": rpc.CodeUnauthorized, "manifest/blame": rpc.CodeUnauthorized, "manifest/verify": rpc.CodeUnauthorized, // the walk gives them no workspace
	}
	for _, m := range s.g.methods() {
		for _, id := range []string{"w", "no-such"} {
			want, special := own[m.Name]
			if !special {
				want = rpc.CodeNotFound
			}
			params, message := withHandle(paramsFor(t, m.Name, id), handles[id]), fmt.Sprintf("there is no workspace %q", id)
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
		if _, bad := powerless.call(t, m.Name, paramsFor(t, m.Name, "w")); m.Right != rpc.NoRight && bad.code() != rpc.CodeUnauthorized {
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
