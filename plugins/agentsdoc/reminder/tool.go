package reminder

import (
	"fmt"
	"strings"
)

// Trimmed is a tool's output of which a host kept only a part.
type Trimmed struct {
	// Tool is the tool's name.
	Tool string
	// Kept and Dropped are lengths in Unit: "characters", "bytes", "lines".
	Kept, Dropped int64
	Unit          string
	// Rest says how to get what was dropped; empty where it is lost.
	Rest string
}

// Message says that a tool's output is not all there. Where nothing was
// dropped there is nothing to say.
func (t Trimmed) Message() Message {
	if t.Dropped <= 0 {
		return Message{}
	}
	unit := name(t.Unit)
	if unit == "" {
		unit = "characters"
	}
	lines := []string{
		"The output of a tool was trimmed:",
		fmt.Sprintf("- tool: %s", name(t.Tool)),
		fmt.Sprintf("- kept: %d %s", t.Kept, unit),
		fmt.Sprintf("- dropped: %d %s", t.Dropped, unit),
	}
	if rest := name(t.Rest); rest != "" {
		lines = append(lines, "- to get the rest: "+rest)
	} else {
		lines = append(lines, "The rest was not kept.")
	}
	return Message{Type: OutputTrimmed, Text: strings.Join(lines, "\n")}
}

// Decision is a decision on a tool's call that came from a hook.
type Decision struct {
	// Tool is the tool's name.
	Tool string
	// Verdict is "allow", "deny" or "ask".
	Verdict string
	// ReasonCode is the hook's word for why, and By the subscription that
	// decided. Either may be empty.
	ReasonCode, By string
}

// Message says that a hook decided on a call. Without a verdict there is nothing
// to say.
func (d Decision) Message() Message {
	if d.Verdict == "" {
		return Message{}
	}
	lines := []string{
		"A hook, and not a person, decided on a call:",
		"- tool: " + name(d.Tool),
		"- verdict: " + name(d.Verdict),
	}
	if code := name(d.ReasonCode); code != "" {
		lines = append(lines, "- reason code: "+code)
	}
	if by := name(d.By); by != "" {
		lines = append(lines, "- decided by: "+by)
	}
	return Message{Type: PermissionDecision, Text: strings.Join(lines, "\n")}
}
