package gateway

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestHookJudgesWhereTheCallRuns: a call is judged in the directory that its own event names. Codex names the call's workdir
// there, Claude Code the directory that an earlier cd led to: cat * is another command in each.
func TestHookJudgesWhereTheCallRuns(t *testing.T) {
	t.Parallel()

	top := must(filepath.EvalSymlinks(t.TempDir()))(t)
	keys := filepath.Join(top, "keys")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	var judged, shown string
	guard := &sdk.Plugin{Name: "guard", Version: "1.0.0", Hooks: []sdk.Hook{
		{
			Name: "call", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{phases.NeedsNothing},
			ToolPreCall: func(_ context.Context, call *sdk.Call, _ *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				judged = call.Context.Dir
				return nil, nil
			},
		},
		{
			Name: "result", Needs: []string{phases.NeedsNothing},
			ToolPostCall: func(_ context.Context, call *sdk.Call, _ *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				shown = call.Context.Dir
				return nil, nil
			},
		},
	}}
	log, tree := logStore(t), storetest.Tree(t, time.Now)
	p := serve(t, Options{Tree: tree, Engine: engine(t, tree, log, guard), Log: log, Roots: []string{top}}).post(t, "")
	for _, host := range []string{"codex", "claude-code"} {
		judged, shown = "", ""
		for _, event := range []struct{ dir, fields string }{
			{top, `"hook_event_name":"UserPromptSubmit","prompt":"hi"`},
			{keys, `"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"cat *"}`},
			{keys, `"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"cat *"},"tool_response":"x"`},
		} {
			if status, got := p.hook(t, host, fmt.Sprintf(`{"session_id":"s","turn_id":"1","cwd":%q,%s}`, event.dir, event.fields)); status != http.StatusOK {
				t.Fatalf("%s: status %d: %s", host, status, got)
			}
		}
		if judged != keys || shown != keys {
			t.Errorf("%s: the call was judged in %q and its result in %q; it ran in %q", host, judged, shown, keys)
		}
	}
}
