// Package api has the types that users of both the command line and the gateway see, so
// that they do not differ: [TurnInput] of a turn that is compiled, [ManifestList] and
// [Find] of kept manifests, and [Schemas], which describe the JSON of Go types.
//
// Stability: internal.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// TurnInput is the JSON of the file of compile's --input, and of the input of the
// gateway's turn/compile. All fields may be absent.
type TurnInput struct {
	UserText      string            `json:"user_text,omitempty"      jsonschema:"the user's message; --message goes before it"`
	Model         string            `json:"model,omitempty"`
	Provider      string            `json:"provider,omitempty"`
	ToolCalling   bool              `json:"tool_calling,omitempty"   jsonschema:"whether the provider can call tools"`
	ExistingTools []string          `json:"existing_tools,omitempty" jsonschema:"names of the host's own tools"`
	HostTools     []phases.Tool     `json:"host_tools,omitempty"     jsonschema:"definitions of the host's own tools, for the record; their names are existing tools, too"`
	History       *manifest.History `json:"history,omitempty"        jsonschema:"what the host sends behind the prompt, for the record"`
	RecallPlan    json.RawMessage   `json:"recall_plan,omitempty"    jsonschema:"what the host's planner wants recalled; without it that phase is not run"`
	Texts         HostTexts         `json:"texts,omitzero"           jsonschema:"texts for the compiler's own sections"`
}

// HostTexts is compiler.HostTexts with JSON names.
type HostTexts struct {
	Identity             string `json:"identity,omitempty"`
	Safety               string `json:"safety,omitempty"`
	SoulCore             string `json:"soul_core,omitempty"`
	IdentityCore         string `json:"identity_core,omitempty"`
	UserPersona          string `json:"user_persona,omitempty"`
	ToolRecovery         bool   `json:"tool_recovery,omitempty"`
	ToolRecoveryPolicy   string `json:"tool_recovery_policy,omitempty"`
	TaskTools            bool   `json:"task_tools,omitempty"`
	TaskOrchestration    string `json:"task_orchestration,omitempty"`
	RecoveryContinuation string `json:"recovery_continuation,omitempty"`
	RetryInstruction     string `json:"retry_instruction,omitempty"`
	DynamicContext       string `json:"dynamic_context,omitempty"`
}

// CompileInput returns the engine's input, without Facts.
func (in *TurnInput) CompileInput() runtime.CompileInput {
	return runtime.CompileInput{
		UserText: in.UserText, Model: in.Model, Provider: in.Provider, ToolCalling: in.ToolCalling,
		ExistingTools: in.ExistingTools, HostTools: in.HostTools, History: in.History, RecallPlan: in.RecallPlan,
		Host: compiler.HostTexts(in.Texts),
	}
}

// Complete fills in defaults: mode agent, profile full, actor user. It refuses an unknown profile.
func Complete(c phases.Context) (phases.Context, error) {
	c.Mode = cmp.Or(c.Mode, phases.ModeAgent)
	c.Profile = cmp.Or(c.Profile, phases.ProfileFull)
	c.Actor.Kind = cmp.Or(c.Actor.Kind, "user")
	switch c.Profile {
	case phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone:
		return c, nil
	default:
		return c, fmt.Errorf("the profile %q is not full, minimal or none", c.Profile)
	}
}

// HostFacts returns this machine's facts. The zone is that of the turn's clock, so that a
// pinned clock gives the same prompt anywhere.
func HostFacts(at time.Time) compiler.Facts {
	return compiler.Facts{TimeZone: ZoneName(at), OS: goruntime.GOOS}
}

// ZoneName names the zone of a time by its distance from UTC, because names of zones depend on the machine.
func ZoneName(at time.Time) string {
	if _, offset := at.Zone(); offset != 0 {
		return at.Format("UTC-07:00")
	}
	return "UTC"
}

// ManifestList is the JSON of a list of kept manifests.
type ManifestList struct {
	Manifests []manifest.Index `json:"manifests" jsonschema:"the newest manifests, newest last"`
	Older     int              `json:"older"     jsonschema:"how many older ones there are"`
}

// List returns the newest manifests that the filter selects. They are counted after they were read: Older is off by what was
// kept or erased between.
func List(ctx context.Context, in interface {
	List(ctx context.Context, f store.Filter) ([]manifest.Index, error)
	Count(ctx context.Context, f store.Filter) (int, error)
}, f store.Filter,
) (l ManifestList, err error) {
	l.Manifests, err = in.List(ctx, f)
	if n := len(l.Manifests); err == nil && n == f.Limit && n > 0 {
		var all int
		if all, err = in.Count(ctx, f); err == nil {
			l.Older = max(0, all-n)
		}
	}
	return l, err
}

// ListLimit is how many manifests are listed unless more are asked for.
const ListLimit = 50

// Latest is the word for the newest manifest.
const Latest = "latest"

// IsManifestID reports whether a word is "latest" or the beginning of an id.
func IsManifestID(word string) bool {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	return word == Latest || word != "" && len(word) <= WholeID && strings.Trim(strings.ToUpper(word), alphabet) == ""
}

// WholeID is the length of a manifest's id.
const WholeID = 26

// Finder finds kept manifests; a *store.Store is one.
type Finder interface {
	Get(ctx context.Context, id string) (*manifest.Manifest, error)
	Latest(ctx context.Context, f store.Filter) (*manifest.Manifest, error)
}

// Find returns a manifest by its id, the beginning of one, or "latest": the newest that the filter accepts. One that
// it does not accept is an error.
func Find(ctx context.Context, in Finder, id string, f store.Filter) (*manifest.Manifest, error) {
	if id == Latest {
		m, err := in.Latest(ctx, f)
		if store.HasCode(err, store.CodeNotFound) {
			err = fmt.Errorf("%w%s", err, About(f))
		}
		return m, err
	}
	m, err := in.Get(ctx, id)
	if err == nil {
		err = Selected(m, f)
	}
	return m, err
}

// Selected returns an error if the filter does not accept a manifest.
func Selected(m *manifest.Manifest, f store.Filter) error {
	if cmp.Or(f.Workspace, m.WorkspaceID) == m.WorkspaceID && cmp.Or(f.Thread, m.ThreadID) == m.ThreadID {
		return nil
	}
	is := store.Filter{Workspace: m.WorkspaceID, Thread: m.ThreadID}
	return &store.Error{
		Code: store.CodeNotFound, Message: "the manifest " + m.ManifestID + " is" + About(is) + ", not" + About(f),
		Hint: "leave out the thread and the workspace, or ask for the latest one there",
	}
}

// About says whose manifests a filter selects, as the end of a sentence; empty for all.
func About(f store.Filter) (about string) {
	if f.Thread != "" {
		about = fmt.Sprintf(" of the thread %.80q", f.Thread)
	}
	if f.Workspace != "" {
		about += fmt.Sprintf(" in the workspace %.80q", f.Workspace)
	}
	return about
}

// addEvents adds the lists of a record of events to those of another record.
func addEvents(to, m *manifest.Manifest) {
	to.HookSources, to.Omitted = append(to.HookSources, m.HookSources...), append(to.Omitted, m.Omitted...)
	to.Runs, to.Diagnostics = append(to.Runs, m.Runs...), append(to.Diagnostics, m.Diagnostics...)
	to.Audits, to.Calls = append(to.Audits, m.Audits...), append(to.Calls, m.Calls...)
	to.Reminders, to.Requests = append(to.Reminders, m.Reminders...), append(to.Requests, m.Requests...)
	to.HostEvents = append(to.HostEvents, m.HostEvents...)
}

// Turn returns m, or the prompt before it if m is a record of events, with what the later records of events have.
func Turn(ctx context.Context, in interface {
	Get(ctx context.Context, id string) (*manifest.Manifest, error)
	Search(ctx context.Context, q store.Query) (store.SearchResult, error)
}, m *manifest.Manifest,
) (*manifest.Manifest, error) {
	const most = 1024 // records of a turn
	found, err := in.Search(ctx, store.Query{
		Filter: store.Filter{Workspace: m.WorkspaceID, Thread: m.ThreadID, Limit: most}, Terms: []manifest.Term{{Kind: manifest.TermTurn, Value: m.TurnID}},
	})
	whole := m
	for _, row := range found.Records {
		if row.ThreadID != m.ThreadID || row.WorkspaceID != m.WorkspaceID { // an empty id selects all
			continue
		}
		next, failed := in.Get(ctx, row.ManifestID)
		switch {
		case failed != nil:
			return nil, failed
		case next.Kind == manifest.KindPrompt && next.Seq > m.Seq:
			return whole, nil
		case next.Kind == manifest.KindPrompt:
			whole = next
		case next.Seq > whole.Seq:
			addEvents(whole, next)
		}
	}
	return whole, err
}

var headPattern = lazyregexp.New(`^(sha256|hmac-sha256):[0-9a-f]{64}$`)

// IsHead reports whether a text is the whole hash of a manifest.
func IsHead(hash string) bool { return headPattern().MatchString(hash) }
