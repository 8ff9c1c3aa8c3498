package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/bridge"
	"github.com/grapnelhq/grapnel/internal/treetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// guards are two hooks that see each call and have nothing against it.
func guards() *sdk.Plugin {
	look := func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
		return nil, nil
	}
	decides := []phases.Kind{phases.KindDecision}
	return &sdk.Plugin{Name: "guards", Version: "1.0.0", Hooks: []sdk.Hook{
		{Name: "one", Kinds: decides, ToolPreCall: look}, {Name: "two", Kinds: decides, ToolPreCall: look},
	}}
}

// BenchmarkHook is the gateway's part of a call that two hooks judge, 20 calls a turn: through a connection of its own, as
// grapnel-hook makes it, and without any transport.
func BenchmarkHook(b *testing.B) {
	tree := treetest.NewModel(time.Now)
	eng := engine(b, tree, nil, guards())
	s := serve(b, Options{Tree: tree, Engine: eng})
	payload := func(n int) string {
		event := `"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}`
		if n%20 == 0 {
			event = `"hook_event_name":"UserPromptSubmit","prompt":"hi"`
		}
		return fmt.Sprintf(`{"session_id":"s","prompt_id":"%d",%s}`, n/20, event)
	}
	b.Run("socket", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if answer, err := s.rawHook(b.Context(), payload(n)); err != nil || !strings.Contains(answer, " 200 ") {
				b.Fatal(answer, err)
			}
		}
	})
	b.Run("engine", func(b *testing.B) {
		bridged := bridge.New(eng, time.Now)
		for n := 0; b.Loop(); n++ {
			e, err := bridge.Decode("claude-code", []byte(payload(n)))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := bridged.Handle(b.Context(), e.Place(hookWorkspace), &e); err != nil {
				b.Fatal(err)
			}
		}
		if err := bridged.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}

// rawHook is what grapnel-hook does.
func (s *served) rawHook(ctx context.Context, payload string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.unix)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // it has been read
	if _, err := fmt.Fprintf(conn, "POST /hook/claude-code HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(payload), payload); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
