package surface

import (
	"cmp"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TurnInput is the JSON of what a host brings to a turn: the file of compile's
// --input, and the input of the gateway's turn/compile. All fields may be absent.
type TurnInput struct {
	UserText      string          `json:"user_text,omitempty"      jsonschema:"the user's message; --message goes before it"`
	Model         string          `json:"model,omitempty"`
	Provider      string          `json:"provider,omitempty"`
	ToolCalling   bool            `json:"tool_calling,omitempty"   jsonschema:"whether the provider can call tools"`
	ExistingTools []string        `json:"existing_tools,omitempty" jsonschema:"names of the host's own tools"`
	RecallPlan    json.RawMessage `json:"recall_plan,omitempty"    jsonschema:"what the host's planner wants recalled; without it that phase is not run"`
	Texts         HostTexts       `json:"texts,omitzero"           jsonschema:"texts for the compiler's own sections"`
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

// CompileInput is the input as the engine takes it. Facts are left to the caller.
func (in *TurnInput) CompileInput() runtime.CompileInput {
	return runtime.CompileInput{
		UserText: in.UserText, Model: in.Model, Provider: in.Provider, ToolCalling: in.ToolCalling,
		ExistingTools: in.ExistingTools, RecallPlan: in.RecallPlan,
		Prompt: compiler.Input{Host: compiler.HostTexts(in.Texts)},
	}
}

// Complete fills in what a context leaves open about the kind of turn: mode agent,
// profile full, caused by a user. It refuses a profile that there is not.
func Complete(c phases.Context) (phases.Context, error) {
	c.Mode = cmp.Or(c.Mode, phases.ModeAgent)
	c.Profile = cmp.Or(c.Profile, phases.ProfileFull)
	c.Actor.Kind = cmp.Or(c.Actor.Kind, "user")
	switch c.Profile {
	case phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone:
		return c, nil
	default:
		return c, fmt.Errorf("the profile %q is none of full, minimal and none", c.Profile)
	}
}

// HostFacts is what this machine knows about where and when. The zone is that of
// the turn's clock, so that a pinned clock gives the same prompt anywhere.
func HostFacts(at time.Time) compiler.Facts {
	return compiler.Facts{TimeZone: ZoneName(at), OS: goruntime.GOOS}
}

// ZoneName names the zone of a time by its distance from UTC: the names of zones
// are known to some machines only.
func ZoneName(at time.Time) string {
	if _, offset := at.Zone(); offset != 0 {
		return at.Format("UTC-07:00")
	}
	return "UTC"
}
