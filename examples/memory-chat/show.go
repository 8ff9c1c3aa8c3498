package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func showPolicy(set []phases.PolicyEntry) {
	for _, p := range set {
		var value struct {
			Source string `json:"source"`
			Reason string `json:"reason_code"`
		}
		if p.Domain == "memory" && p.Key == "turn_policy" && json.Unmarshal(p.Value, &value) == nil {
			fmt.Printf("policy: %s, by %s\n", value.Reason, value.Source)
		}
	}
}

// showRecall prints which memories went into the prompt, which hook brought them, and
// what the memory remarked, as the prompt's manifest says.
func showRecall(m *manifest.Manifest) {
	for _, d := range m.Diagnostics {
		if strings.HasPrefix(d.HookSource, "memory.") {
			fmt.Println("notes:  " + d.HookSource + " " + strings.TrimSpace(d.Code+" "+d.Message))
		}
	}
	for _, s := range m.Sections {
		if s.SectionID != "memory_recall" {
			continue
		}
		for _, ref := range s.SourceRefs {
			fmt.Printf("prompt: %s %s, %s\n", ref.Kind, ref.ID, ref.Label)
		}
	}
}

// showAll prints what is remembered about the workspace, by a call outside of any turn,
// which no turn's policy restricts.
func showAll(ctx context.Context, eng *runtime.Engine) error {
	res, err := eng.CallTool(ctx, "memory", phases.ToolCall{
		Tool: "memory_list", Arguments: json.RawMessage(`{}`), Context: phases.Context{WorkspaceID: workspace},
	})
	if err != nil {
		return err
	}
	var page struct {
		Items []struct {
			ID       string `json:"id"`
			Scope    string `json:"scope"`
			Category string `json:"category"`
			Text     string `json:"text"`
		} `json:"items"`
	}
	if err := json.Unmarshal(res.Content, &page); err != nil {
		return fmt.Errorf("memory_list: %w", err)
	}
	fmt.Println("remembered at the end:")
	for _, item := range page.Items {
		fmt.Printf("  %s %s, %s: %s\n", item.ID, item.Scope, item.Category, item.Text)
	}
	return nil
}

type events struct {
	mu   sync.Mutex
	list []runtime.Event
}

func (e *events) note(ev runtime.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case ev.Kind == runtime.EventAudit && ev.Code == "memory_stored", ev.Kind == runtime.EventFailOpen,
		ev.Kind == runtime.EventRun && ev.Run.Phase == phases.PhaseHostCall:
		e.list = append(e.list, ev)
	}
}

// show prints what became of the facts of a turn, what a model was asked for it, and hooks that failed.
func (e *events) show() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		switch ev.Kind {
		case runtime.EventAudit:
			err = errors.Join(err, showStored(ev.Detail))
		case runtime.EventRun:
			fmt.Println(strings.TrimSpace(fmt.Sprintf("asks:   %s: %s, %d tokens, %s %s",
				ev.Subscription, ev.Run.Model, ev.Run.Usage.InputTokens+ev.Run.Usage.OutputTokens, ev.State, ev.Code)))
		default:
			fmt.Printf("failed: %s: %s: %s\n", ev.Subscription, ev.Code, ev.Message)
		}
	}
	e.list = nil
	return err
}

func showStored(details string) error {
	var stored struct {
		Items []struct {
			Change   string   `json:"change"`
			ID       string   `json:"id"`
			Replaced []string `json:"replaced"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(details), &stored); err != nil {
		return fmt.Errorf("what was stored: %w", err)
	}
	for _, i := range stored.Items {
		fmt.Println("stores: " + became(i.Change, i.ID, i.Replaced))
	}
	return nil
}

func became(change, id string, replaced []string) string {
	switch change {
	case "replaced":
		return id + ", in the place of " + strings.Join(replaced, " and ")
	case "known":
		return id + ", which was there already"
	case "forgotten":
		return "nothing that the user had forgotten before"
	}
	return id
}
