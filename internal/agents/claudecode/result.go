package claudecode

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// bashOutput is the shape of what the tool Bash gives.
type bashOutput struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	Interrupted bool   `json:"interrupted"`
	IsImage     bool   `json:"isImage"`
}

// readOutput is the shape of a text that the tool Read gives.
type readOutput struct {
	Type string   `json:"type"`
	File readFile `json:"file"`
}

type readFile struct {
	Path    string `json:"filePath"`
	Content string `json:"content"`
	Lines   int    `json:"numLines"`
	Start   int    `json:"startLine"`
	Total   int    `json:"totalLines"`
}

// outputOf puts a rewritten result into the tool's own shape. The host checks the shape for its own tools, and gives the
// model the original if it does not fit: sure is false where that may happen, or the text may not be shown.
func outputOf(e *agent.Event, text string) (output any, sure bool) {
	tool := e.Call.Tool
	if tool == "Bash" {
		return bashOutput{Stdout: text}, true
	}
	if now, ok := inShape(e.Response, text); ok {
		return now, true
	}
	switch {
	case strings.HasPrefix(tool, "mcp__"):
		return text, true
	case tool == "Read":
		path, lines := agent.TextOf(jsonscan.Member(e.Call.Arguments, "file_path")), strings.Count(text, "\n")+1
		return readOutput{"text", readFile{path, text, lines, 1, lines}}, true
	}
	return withText(e.Response, text), tool == "Grep" || tool == "Glob"
}

// inShape returns a text in the shape of a response, if it has that shape: as a string, or as JSON.
func inShape(response json.RawMessage, text string) (output any, ok bool) {
	var was, now any
	if json.Unmarshal(response, &was) != nil {
		return nil, false
	}
	if _, is := was.(string); is {
		return text, true
	}
	if json.Unmarshal([]byte(text), &now) != nil || !sameShape(was, now) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// sameShape reports whether two values are of the same kind, objects with the same members; lists may have any length.
func sameShape(was, now any) bool {
	switch was := was.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		if !ok || len(now) != len(was) {
			return false
		}
		for name := range was {
			if value, there := now[name]; !there || !sameShape(was[name], value) {
				return false
			}
		}
		return true
	case []any:
		now, ok := now.([]any)
		return ok && !slices.ContainsFunc(now, func(value any) bool {
			return !slices.ContainsFunc(was, func(like any) bool { return sameShape(like, value) })
		})
	}
	return reflect.TypeOf(was) == reflect.TypeOf(now)
}

// withText is a response with one text in place of all that it has: the first of the members that tools have for what
// they give, or the first text, gets it, and all others are emptied. Words that tell shapes apart stay.
func withText(response json.RawMessage, text string) any {
	var value any
	dec := json.NewDecoder(bytes.NewReader(response))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return nil
	}
	for _, member := range []string{"content", "text", "result", "output", ""} {
		if now, placed := replaceTexts(value, "", member, text); placed {
			return now
		}
	}
	return nil
}

// replaceTexts empties the texts of a value, but for the first one with a name, or of any name, which becomes text.
func replaceTexts(value any, name, member, text string) (now any, placed bool) {
	inner := func(name string, value any) any {
		now, here := replaceTexts(value, name, member, text)
		if here {
			placed, text = true, ""
		}
		return now
	}
	switch value := value.(type) {
	case string:
		switch {
		case name == "type" || name == "mode" || name == "status":
			return value, false
		case member == "" || member == name:
			return text, true
		}
		return "", false
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = inner(name, value[i])
		}
		return list, placed
	case map[string]any:
		object := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			object[key] = inner(key, value[key])
		}
		return object, placed
	}
	return value, false
}
