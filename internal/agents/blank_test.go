package agents_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/phases"
)

// blanks are texts that a plugin may give and that hosts take for nothing, and one that they take.
var blanks = []string{"", " ", "\n\t", "\u00a0\u2003", "\ufeff", "words"}

// everyOutcome has each outcome with each blank text, and arguments that are not an object.
func everyOutcome() (all []agent.Outcome) {
	for _, text := range blanks {
		all = append(all, agent.Outcome{Result: &text}, agent.Outcome{Context: text}, agent.Outcome{Result: &text, Context: text})
		for _, v := range []phases.Verdict{phases.VerdictDeny, phases.VerdictAsk} {
			all = append(all, agent.Outcome{Verdict: v, Reason: text})
		}
	}
	for _, arguments := range []string{`{"command":"ls -l"}`, `{"command":""}`, `{"command":null}`, `{}`, `null`, ` null `, `[]`, `""`, `7`, ``} {
		all = append(all, agent.Outcome{Arguments: json.RawMessage(arguments)})
	}
	return all
}

// TestBlankAnswers: whatever plugins give, no answer has a blank text or null, which hosts take for a failed hook or for
// nothing, and a host that reads the answer by its own rules does what was decided.
func TestBlankAnswers(t *testing.T) {
	t.Parallel()

	for _, file := range archives(t) {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := agents.Decode(hostOf(file), ar.Files[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range everyOutcome() {
			checkBlank(t, &e, &o, agents.Encode(&e, &o))
		}
	}
}

func checkBlank(t *testing.T, e *agent.Event, o *agent.Outcome, answer []byte) {
	t.Helper()
	var v any
	if len(answer) > 0 && json.Unmarshal(answer, &v) != nil || hasBlank(v, false) {
		t.Errorf("%s %s, %+v: a blank text in %s", e.Host, e.Name, o, answer)
	}
	stops := o.Verdict != "" || o.Arguments != nil && !strings.HasPrefix(string(o.Arguments), "{")
	replaces := o.Result != nil && e.Step == agent.StepToolResult
	must := e.Step == agent.StepToolCall && (stops || o.Arguments != nil && e.Host != "cursor") ||
		(e.Step == agent.StepPrompt || e.Step == agent.StepStop) && o.Verdict != "" || replaces
	if must && len(strings.Trim(string(answer), "{}\n")) == 0 {
		t.Errorf("%s %s, %+v: it answers nothing", e.Host, e.Name, o)
	}
	if e.Agent.Scripts == nil || e.Host == "vscode" || e.Name == "userPromptTransformed" || e.Name == "beforeReadFile" || e.Step == agent.StepPermission || e.Step == agent.StepSubagent || e.AgentID != "" {
		return
	}
	got, err := scripts.Answer(scripts.Of(e.Agent, e.Name), &agent.Output{Stdout: answer}, &agent.Facts{Arguments: e.Call.Arguments})
	denied := got.Verdict == phases.VerdictDeny || got.Verdict == phases.VerdictAsk
	switch {
	case err != nil:
		t.Errorf("%s %s, %+v: the host refuses %s: %v", e.Host, e.Name, o, answer, err)
	case must && !replaces && stops && !denied:
		t.Errorf("%s %s, %+v: %s does not stop it", e.Host, e.Name, o, answer)
	case replaces && !e.IsError && e.Host != "cursor" && got.Result == nil:
		t.Errorf("%s %s, %+v: %s keeps the result", e.Host, e.Name, o, answer)
	case replaces && (e.Host != "cursor" || !e.IsError) && got.Result == nil && len(got.Context) == 0: // Cursor drops answers about failures
		t.Errorf("%s %s, %+v: %s says nothing", e.Host, e.Name, o, answer)
	}
}

// hasBlank reports whether a value has a text that hosts take for nothing, or null; what a tool takes or gives may.
func hasBlank(v any, free bool) bool {
	switch v := v.(type) {
	case string:
		return !free && strings.Trim(strings.TrimSpace(v), "\ufeff") == ""
	case map[string]any:
		for name, value := range v {
			inTool := free || slices.Contains([]string{"updatedInput", "modifiedArgs", "tool_input", "updated_input", "arguments", "updatedToolOutput"}, name)
			if _, is := value.(map[string]any); inTool && !free && !is && name != "updatedToolOutput" || value == nil && !free || hasBlank(value, inTool) {
				return true
			}
		}
	}
	return false
}
