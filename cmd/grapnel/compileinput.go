package main

import (
	"encoding/json"
	goruntime "runtime"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/runtime"
)

// turnInput is the JSON of compile's --input. All fields may be absent.
type turnInput struct {
	UserText      string          `json:"user_text,omitempty"      jsonschema:"the user's message; --message goes before it"`
	Model         string          `json:"model,omitempty"`
	Provider      string          `json:"provider,omitempty"`
	ToolCalling   bool            `json:"tool_calling,omitempty"   jsonschema:"whether the provider can call tools"`
	ExistingTools []string        `json:"existing_tools,omitempty" jsonschema:"names of the host's own tools"`
	RecallPlan    json.RawMessage `json:"recall_plan,omitempty"    jsonschema:"what the host's planner wants recalled; without it that phase is not run"`
	Texts         hostTexts       `json:"texts,omitzero"           jsonschema:"texts for the compiler's own sections"`
}

// hostTexts is compiler.HostTexts with JSON names.
type hostTexts struct {
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

// compileInput is what --input and --message bring; the message wins.
func (a *app) compileInput(f *compileFlags) (runtime.CompileInput, error) {
	var in runtime.CompileInput
	if f.input == "-" && f.message == "-" {
		return in, usagef("--input and --message cannot both be read from standard input")
	}
	data, err := a.readJSON("input", f.input)
	if err != nil {
		return in, err
	}
	var file turnInput
	if len(data) > 0 {
		if err := strictJSON(data, &file); err != nil {
			return in, usagef("--input %s: %w; see: grapnel schema compile-input", f.input, err)
		}
	}
	in = runtime.CompileInput{
		UserText: file.UserText, Model: file.Model, Provider: file.Provider, ToolCalling: file.ToolCalling,
		ExistingTools: file.ExistingTools, RecallPlan: file.RecallPlan,
		Prompt: compiler.Input{Host: compiler.HostTexts(file.Texts)},
	}
	switch f.message {
	case "":
	case "-":
		text, err := a.readInput("message", "-")
		if err != nil {
			return in, err
		}
		in.UserText = string(text)
	default:
		in.UserText = f.message
	}
	return in, nil
}

// hostFacts is what this host knows about where and when. The zone is that of
// the turn's clock, so that a pinned clock gives the same prompt anywhere.
func hostFacts(at time.Time) compiler.Facts {
	zone := "UTC"
	if _, offset := at.Zone(); offset != 0 {
		zone = at.Format("UTC-07:00")
	}
	return compiler.Facts{TimeZone: zone, OS: goruntime.GOOS}
}
