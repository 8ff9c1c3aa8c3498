package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/runtime"
)

// memoryRow is one memory in a list.
type memoryRow struct {
	WorkspaceID string              `json:"workspace_id"`
	ID          string              `json:"id"`
	Scope       itemstore.Scope     `json:"scope"`
	ScopeID     string              `json:"scope_id"     jsonschema:"the thread, agent or user; empty for a workspace's"`
	Category    turnpolicy.Category `json:"category"`
	Text        string              `json:"text"         jsonschema:"what is remembered; forget shows the beginning"`
	UpdatedAt   time.Time           `json:"updated_at"   jsonschema:"when it was stored, or last said again"`
	Uses        int                 `json:"uses"         jsonschema:"how often it went into a prompt"`
}

// rowOf is a tool's entry with its workspace.
func rowOf(workspace string, e *toolset.Entry) memoryRow {
	return memoryRow{workspace, e.ID, e.Scope, e.ScopeID, e.Category, e.Text, e.UpdatedAt, e.Uses}
}

// rowsOf are entries of one workspace.
func rowsOf(workspace string, list []toolset.Entry) []memoryRow {
	rows := []memoryRow{}
	for i := range list {
		rows = append(rows, rowOf(workspace, &list[i]))
	}
	return rows
}

// memoryTools are the plugin's tools, called for a person and not in a turn: what a
// turn's policy forbids a model does not matter.
type memoryTools struct {
	engine *runtime.Engine
	plugin string
}

// withTools runs the plugin in this process, under its configuration, with nothing
// but its tools.
func (a *app) withTools(ctx context.Context, p *memoryPlace, work func(context.Context, *memoryTools) error) error {
	declared := p.plugin
	declared.Grants = phases.Grants{Tools: toolset.Names()}
	cfg := onlyPlugin(p.cfg, declared)
	cfg.Plugins[0].Subscriptions = nil
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	o := runtime.Options{InProcess: map[string]runtime.Plugin{declared.Name: memory.New()}}
	return a.withEngine(ctx, cfg, o, func(ctx context.Context, eng *runtime.Engine) error {
		if err := started(eng, declared.Name); err != nil {
			return err
		}
		return work(ctx, &memoryTools{eng, declared.Name})
	})
}

// toolRefusal is a tool's own answer that it did not do what was asked.
type toolRefusal struct{ toolset.Refusal }

// Error implements error.
func (r *toolRefusal) Error() string { return r.Refusal.Error }

// call calls a tool in a workspace. An answer that the tool reports as a failure is a
// *toolRefusal.
func (t *memoryTools) call(ctx context.Context, workspace, tool string, args map[string]any, answer any) error {
	data, err := json.Marshal(args)
	if err != nil {
		return err
	}
	res, err := t.engine.CallTool(ctx, t.plugin, phases.ToolCall{
		Tool: tool, Arguments: data, Context: phases.Context{WorkspaceID: workspace, Now: time.Now(), Mode: phases.ModeAgent},
	})
	switch {
	case err != nil:
		return unable(fmt.Errorf("%s: %w", tool, err))
	case res.IsError:
		r := &toolRefusal{}
		if err := json.Unmarshal(res.Content, &r.Refusal); err != nil {
			return unable(fmt.Errorf("%s: %s", tool, res.Content))
		}
		return r
	}
	if err := json.Unmarshal(res.Content, answer); err != nil {
		return unable(fmt.Errorf("the answer of %s: %w", tool, err))
	}
	return nil
}

// failed gives what is left of a tool's refusal an exit code: the tool could not do
// what it is there for.
func (t *memoryTools) failed(err error) error {
	if r, ok := errors.AsType[*toolRefusal](err); ok {
		return unable(oneLine{r})
	}
	return err
}

// reasonNotThere is the tools' reason where there is no such memory.
const reasonNotThere = "not_found"

// isNotThere reports whether a tool has said that there is no such memory.
func isNotThere(err error) bool {
	r, ok := errors.AsType[*toolRefusal](err)
	return ok && r.ReasonCode == reasonNotThere
}

// page asks for a page of a workspace's memories.
func (t *memoryTools) page(ctx context.Context, workspace string, n narrowed, limit int, cursor string) (toolset.Page, error) {
	args := map[string]any{"limit": limit}
	for name, value := range map[string]string{"scope": n.scope, "category": n.category, "cursor": cursor} {
		if value != "" {
			args[name] = value
		}
	}
	var page toolset.Page
	err := t.call(ctx, workspace, toolset.List, args, &page)
	return page, err
}

// find looks for a memory in the workspaces. Where none has it, the error says which
// one may be meant.
func (t *memoryTools) find(ctx context.Context, p *memoryPlace, workspaces []string, id string) (toolset.Whole, string, error) {
	for _, workspace := range workspaces {
		var whole toolset.Whole
		err := t.call(ctx, workspace, toolset.Get, map[string]any{"id": id}, &whole)
		if !isNotThere(err) {
			return whole, workspace, t.failed(err)
		}
	}
	hint, err := t.nearest(ctx, workspaces, id)
	if err != nil {
		return toolset.Whole{}, "", t.failed(err)
	}
	of := ""
	if p.flags.chosen {
		of = fmt.Sprintf(" in the workspace %q", p.flags.workspace)
	}
	return toolset.Whole{}, "", refused(fmt.Errorf("there is no memory %q%s%s; see: grapnel memory list", id, of, hint))
}

// nearestPages is how many pages of each workspace are looked at for an id that may
// be meant.
const nearestPages = 4

// nearest is a question for the id that may be meant; empty if none comes near.
func (t *memoryTools) nearest(ctx context.Context, workspaces []string, id string) (string, error) {
	var ids []string
	for _, workspace := range workspaces {
		cursor := ""
		for range nearestPages {
			page, err := t.page(ctx, workspace, narrowed{}, maxToolPage, cursor)
			if err != nil {
				return "", err
			}
			for i := range page.Items {
				// The beginning of an id is all that fits on some screens.
				if len(id) >= 6 && strings.HasPrefix(page.Items[i].ID, strings.ToUpper(id)) {
					return phases.DidYouMean(page.Items[i].ID, []string{page.Items[i].ID}), nil
				}
				ids = append(ids, page.Items[i].ID)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return phases.DidYouMean(id, ids), nil
}
