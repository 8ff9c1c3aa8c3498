package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/toolschema"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// The codes of problems.
const (
	CodeStarting = "mcp_server_starting"
	CodeDown     = "mcp_server_down"
	CodeNoise    = "mcp_stdout_noise"
	CodeTooMany  = "mcp_too_many_tools"
	CodeName     = "mcp_tool_name"
	CodeTooLarge = "mcp_tool_too_large"
	CodeInvalid  = "mcp_tool_invalid"
	CodeSchema   = "mcp_tool_schema_reduced"
	CodeContent  = "mcp_content_unknown"
)

// Problem is one kind of what is wrong with a server, in one sentence without its name.
type Problem struct{ Code, Message string }

// Bounds of a list.
const (
	// MaxTools is how many granted tools of one server are kept: as many as a tool bundle may have.
	MaxTools       = phases.MaxListed
	mostListed     = 4096 // tools that are looked at
	mostPages      = 256
	maxName        = 128
	maxDescription = 16 << 10
	maxSchema      = 64 << 10
	maxAll         = 1 << 20
)

// Tool is a tool as its server describes it, within the bounds.
type Tool struct {
	// Name is the server's name of it: letters, digits and _ . / -
	Name        string
	Description string
	// Schema is a JSON object.
	Schema json.RawMessage
}

// Listing is what a server offers: granted tools by name, instructions, and what was wrong.
type Listing struct {
	Tools        []Tool
	Instructions string
	Problems     []Problem
}

// lister collects a listing.
type lister struct {
	granted func(string) bool
	tools   []Tool
	bytes   int
	wrong   map[string][]string // names by code
	seen    int
}

func listTools(ctx context.Context, session *mcp.ClientSession, granted func(string) bool) (*Listing, error) {
	l := &lister{granted: granted, wrong: map[string][]string{}}
	params := &mcp.ListToolsParams{}
	for page := 1; ; page++ {
		res, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range res.Tools {
			l.add(t)
		}
		if res.NextCursor == "" {
			return l.listing(false), nil
		}
		if page == mostPages || l.seen >= mostListed {
			return l.listing(true), nil
		}
		params.Cursor = res.NextCursor
	}
}

func (l *lister) add(t *mcp.Tool) {
	l.seen++
	switch {
	case l.seen > mostListed || t == nil:
	case t.Meta[illegible] != nil && (t.Name == "" || l.granted(t.Name)):
		l.blame(CodeInvalid, cmp.Or(t.Name, fmt.Sprintf("entry %d", l.seen)), t.Description)
	case !validName().MatchString(t.Name):
		l.blame(CodeName, t.Name, "")
	case l.granted(t.Name):
		l.check(t)
	}
}

func (l *lister) check(t *mcp.Tool) {
	raw, err := json.Marshal(t.InputSchema)
	description := sdk.CleanText(t.Description)
	var removed []string
	if err == nil && len(raw) <= maxSchema {
		raw, removed, err = toolschema.Normal(raw) // which may be longer
	}
	size := len(raw) + len(description)
	if len(raw) > maxSchema || len(description) > maxDescription || l.bytes+size > maxAll {
		l.blame(CodeTooLarge, t.Name, "")
		return
	}
	if slices.ContainsFunc(l.tools, func(other Tool) bool { return other.Name == t.Name }) {
		err = errors.New("it is listed twice")
	}
	switch {
	case err != nil:
		l.blame(CodeInvalid, t.Name, err.Error())
		return
	case len(removed) > 0:
		l.blame(CodeSchema, t.Name, strings.Join(removed, ", "))
	}
	if len(l.tools) < MaxTools {
		l.bytes += size
	}
	l.tools = append(l.tools, Tool{t.Name, description, raw})
}

// blame keeps the name of a tool, and a reason if the code alone does not say it.
func (l *lister) blame(code, name, why string) {
	if name = sdk.PlainName(sdk.CutText(name, maxName)); why != "" {
		name += " (" + sdk.PlainName(sdk.CutText(why, maxName)) + ")"
	}
	l.wrong[code] = append(l.wrong[code], name)
}

// listing sorts the tools, and keeps the first. cut says that not all were looked at.
func (l *lister) listing(cut bool) *Listing {
	slices.SortFunc(l.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	out := &Listing{Tools: l.tools}
	if n := len(l.tools); n > MaxTools || cut || l.seen > mostListed {
		out.Tools = l.tools[:min(n, MaxTools)]
		out.Problems = append(out.Problems, Problem{CodeTooMany, fmt.Sprintf(
			"it lists more tools than are taken: %d of them are kept; grant fewer by name (tools)", len(out.Tools))})
	}
	for _, p := range []Problem{
		{CodeName, "%s withheld for the name: 1 to 128 letters, digits and _ . / - are allowed: %s"},
		{CodeTooLarge, "%s withheld for the size: a schema may have 64 KiB, a description 16 KiB, all of a server 1 MiB: %s"},
		{CodeInvalid, "%s withheld, since providers refuse the input schema, the name is there twice or the entry cannot be read: %s"},
		{CodeSchema, "%s offered without parts of the input schema that providers refuse: %s"},
	} {
		if names := l.wrong[p.Code]; len(names) > 0 {
			out.Problems = append(out.Problems, Problem{p.Code, fmt.Sprintf(p.Message, Tools(len(names)), First(names))})
		}
	}
	return out
}

// Tools is "1 tool is" or "N tools are".
func Tools(n int) string {
	if n == 1 {
		return "1 tool is"
	}
	return fmt.Sprintf("%d tools are", n)
}

// First lists the first ten names.
func First(names []string) string {
	if n := len(names) - 10; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:10], ", "), n)
	}
	return strings.Join(names, ", ")
}

// validName matches the names of tools that are listed; see [Tool].
var validName = lazyregexp.New(`^[A-Za-z0-9_./-]{1,128}$`)

// resultOf is a result as a text: what is no text is named, not shown, and what is too long is cut with a line that says so.
func resultOf(res *mcp.CallToolResult, most int) (out Result) {
	var b strings.Builder
	for _, c := range res.Content {
		if b.Len() > most {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		switch c := c.(type) {
		case *mcp.TextContent:
			if b.WriteString(c.Text); c.Meta[illegible] != nil {
				out.Problems = append(out.Problems, Problem{CodeContent, c.Text})
			}
		case *mcp.ImageContent:
			fmt.Fprintf(&b, "[an image (%s, %d bytes) is not shown]", sdk.PlainName(c.MIMEType), len(c.Data))
		case *mcp.AudioContent:
			fmt.Fprintf(&b, "[a sound (%s, %d bytes) is not shown]", sdk.PlainName(c.MIMEType), len(c.Data))
		case *mcp.ResourceLink:
			fmt.Fprintf(&b, "[resource %s]", sdk.PlainName(c.URI))
		case *mcp.EmbeddedResource:
			b.WriteString(embedded(c))
		}
	}
	if b.Len() == 0 && res.StructuredContent != nil {
		if raw, err := json.Marshal(res.StructuredContent); err == nil {
			b.Write(raw)
		}
	}
	out.Text, out.IsError = cut(sdk.CleanText(b.String()), most), res.IsError
	return out
}

// illegible marks what stands in the place of a part that the SDK would refuse, and the whole result with it.
const illegible = "grapnel/illegible"

// legible returns a message in which each part of a result that this program cannot read is one that says so. A result that
// cannot be read even so is an error in plain words.
func legible(raw []byte) []byte {
	var message, result map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil || message["result"] == nil {
		return raw
	}
	flaw, changed := "", false
	switch err := json.Unmarshal(message["result"], &result); {
	case err != nil:
		flaw = "it is not an object"
	case result["tools"] != nil:
		changed = mend(result, "tools", legibleTool)
		flaw = flawOf(result, func() any { return new(mcp.ListToolsResult) })
	case result["content"] != nil || result["isError"] != nil:
		changed = mend(result, "content", legiblePart)
		flaw = flawOf(result, func() any { return new(mcp.CallToolResult) })
	}
	switch {
	case flaw != "":
		delete(message, "result")
		message["error"], _ = json.Marshal(map[string]any{"code": jsonrpc.CodeInternalError, "message": "its answer cannot be read: " + flaw}) //nolint:errchkjson // texts
	case changed:
		message["result"], _ = json.Marshal(result) //nolint:errchkjson // all of it was decoded
	default:
		return raw
	}
	raw, _ = json.Marshal(message) //nolint:errchkjson // as above
	return append(raw, '\n')
}

// mend replaces the parts of a list for which there is another text, and reports whether there are any.
func mend(result map[string]json.RawMessage, key string, other func(part json.RawMessage) map[string]any) (changed bool) {
	var parts []json.RawMessage
	if json.Unmarshal(result[key], &parts) != nil {
		return false
	}
	for i, part := range parts {
		if with := other(part); with != nil {
			with["_meta"] = map[string]bool{illegible: true}
			parts[i], _ = json.Marshal(with) //nolint:errchkjson // texts
			changed = true
		}
	}
	if changed {
		result[key], _ = json.Marshal(parts) //nolint:errchkjson // all of it was decoded
	}
	return changed
}

// flawOf names the first member of an object that is not what it should be.
func flawOf(object map[string]json.RawMessage, into func() any) string {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		one, err := json.Marshal(map[string]json.RawMessage{key: object[key]})
		if err != nil || json.Unmarshal(one, into()) != nil {
			return fmt.Sprintf("its %s is not of the type that the protocol has for it", sdk.PlainName(sdk.CutText(key, maxName)))
		}
	}
	return ""
}

// legibleTool is another entry for a tool that cannot be read: its name, if that can be read, and what is wrong.
func legibleTool(part json.RawMessage) map[string]any {
	var members map[string]json.RawMessage
	flaw := "it is not an object"
	if json.Unmarshal(part, &members) == nil {
		flaw = flawOf(members, func() any { return new(mcp.Tool) })
	}
	if flaw == "" {
		return nil
	}
	var name string
	_ = json.Unmarshal(members["name"], &name) // it may be what is wrong
	return map[string]any{"name": name, "description": flaw}
}

// legiblePart is a text for a part of a call's result that cannot be read, with its type.
func legiblePart(part json.RawMessage) map[string]any {
	var c struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(part, &c)
	known := slices.Contains([]string{"text", "image", "audio", "resource_link", "resource"}, c.Type)
	if err == nil && known && json.Unmarshal(fmt.Appendf(nil, `{"content":[%s]}`, part), new(mcp.CallToolResult)) == nil {
		return nil
	}
	return map[string]any{"type": "text", "text": fmt.Sprintf("[content of the type %q cannot be read and is not shown]", sdk.PlainName(sdk.CutText(c.Type, maxName)))}
}

func embedded(c *mcp.EmbeddedResource) string {
	switch {
	case c.Resource == nil:
		return ""
	case c.Resource.Text != "":
		return c.Resource.Text
	}
	return fmt.Sprintf("[resource %s (%d bytes) is not shown]", sdk.PlainName(c.Resource.URI), len(c.Resource.Blob))
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := strings.ToValidUTF8(text[:most], "")
	return fmt.Sprintf("%s\n[the result has %d bytes; only the first %d are there]", kept, len(text), len(kept))
}
