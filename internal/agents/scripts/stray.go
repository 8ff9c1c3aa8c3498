package scripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// unseen matches what a terminal does not show: sequences that set colours or titles, and byte order marks.
var unseen = lazyregexp.New("\x1b\\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\ufeff")

// answerWords are the members of answers, by what else their values are likely to be in a text that is no answer: words
// list those of an answer, and kinds how its JSON begins. A member without either is not looked for in a text for the model.
//
//nolint:gochecknoglobals // an immutable table
var answerWords = map[string]struct {
	words []string
	kinds string
}{
	"decision": {words: decisions}, "permissionDecision": {words: decisions}, "hookSpecificOutput": {kinds: "{"},
	"continue": {kinds: "tf"}, "suppressOutput": {kinds: "tf"}, "stopReason": {kinds: `"`}, "systemMessage": {kinds: `"`}, "additionalContext": {kinds: `"`},
	"permissionDecisionReason": {}, "updatedInput": {}, "updatedToolOutput": {}, "modifiedArgs": {}, "modifiedResult": {},
}

var decisions = []string{"block", "approve", "deny", "allow", "ask", "defer"} //nolint:gochecknoglobals // an immutable table

// strayDepth bounds how deep an answer is nested: each { of a text may begin one.
const strayDepth = 32

// stray finds an answer in a text that the agent does not read as JSON, for what stands around it, and says where. In a
// text that is for the model, only a whole object counts that begins a line or ends the text.
func stray(h *agent.Hook, out []byte) error {
	if h.Silent() || len(out) == 0 {
		return nil
	}
	var inner string
	if json.Unmarshal(out, &inner) == nil {
		out = []byte(inner)
	}
	out = bytes.TrimSpace(unseen().ReplaceAll(out, nil))
	forModel := h.Step == agent.StepPrompt || h.Step == agent.StepSessionStart
	first := true // whether only blanks and brackets stand before in the line
	for i := 0; i < len(out); i++ {
		if out[i] != '{' {
			first = out[i] == '\n' || first && strings.IndexByte(" \t\r[", out[i]) >= 0
			continue
		}
		found, whole, end := answerAt(out, i, forModel)
		if found && (!forModel || whole && (first || end == len(out))) {
			return fmt.Errorf("line %d has an answer in JSON that the agent does not see, for other text is around it: write the JSON object alone to standard output", 1+bytes.Count(out[:i], []byte("\n")))
		}
		first = false
		if whole {
			i = end - 1
		}
	}
	return nil
}

// answerAt reports whether the object at a place has a member of answers, whether it is whole, and where it ends. Values
// count if exact is set.
func answerAt(text []byte, at int, exact bool) (found, whole bool, end int) {
	d := jsonscan.Reader(text[at:])
	name := ""
	for {
		token, err := d.ReadToken()
		depth := d.StackDepth()
		if err != nil || depth > strayDepth {
			return found, false, at
		}
		if depth == 0 {
			return found, true, at + int(d.InputOffset())
		}
		member, known := answerWords[name]
		found = found || known && exact && (slices.Contains(member.words, token.String()) || strings.IndexByte(member.kinds, byte(token.Kind())) >= 0)
		name = ""
		if _, n := d.StackIndex(1); depth == 1 && n%2 == 1 {
			name = token.String()
			_, known = answerWords[name]
			found = found || known && !exact
		}
	}
}

// misplaced returns an error for an answer to a call that forbids it in a member that the agent does not read there, or in
// a word that it does not know.
func misplaced(h *agent.Hook, a *agent.Answer, out []byte) error {
	if h.Step != agent.StepToolCall || a.Verdict != "" || h.Silent() {
		return nil
	}
	for _, object := range [][]byte{out, jsonscan.Member(out, "hookSpecificOutput")} {
		for _, name := range []string{"permissionDecision", "decision", "permission"} {
			word := agent.TextOf(jsonscan.Member(object, name))
			if slices.Contains([]string{"deny", "block", "ask", "defer"}, strings.ToLower(word)) {
				return fmt.Errorf("%q: %q stands where the agent does not read it, so that it would make the call", name, word)
			}
		}
	}
	return nil
}
