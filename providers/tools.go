package providers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/toolschema"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Tool is a tool's definition, ready to be sent.
type Tool struct {
	// Name is the name on the wire; see [Names].
	Name        string
	Description string
	// Schema is a JSON Schema of type object in canonical JSON. It is not decoded,
	// because encoders of SDKs write a json.Number as a string.
	Schema json.RawMessage
	// Text is the whole definition as canonical JSON, for counting and hashing.
	Text string
}

// layTools sorts tools and makes their names and schemas canonical.
func (l *Layout) layTools(tools []phases.Tool) error {
	sorted := slices.SortedFunc(slices.Values(tools), func(a, b phases.Tool) int { return strings.Compare(a.Name, b.Name) })
	for i := range sorted[min(len(sorted), 1):] {
		if sorted[i].Name == sorted[i+1].Name {
			return fmt.Errorf("two tools are called %q", sorted[i].Name)
		}
	}
	l.Names = newNames(l.rules, sorted)
	for _, t := range l.fewer(sorted) {
		wire := l.Names.Wire(t.Name)
		if wire != t.Name {
			l.Warnf(codeToolRenamed, "the tool %s is called %s: the provider does not accept its name", t.Name, wire)
			l.change(manifest.RequestToolName, t.Name, t.Name, wire)
		}
		out := Tool{Name: wire, Description: t.Description}
		if err := out.define(t.InputSchema); err != nil {
			return fmt.Errorf("tool %q: input schema: %w", t.Name, err)
		}
		l.Tools = append(l.Tools, out)
	}
	return nil
}

// fewer returns as many tools as the provider accepts: the first by name, and the one that loads hidden tools.
func (l *Layout) fewer(tools []phases.Tool) []phases.Tool {
	most := l.rules[ruleToolCount].Max
	if most == 0 || len(tools) <= most {
		return tools
	}
	loader := compiler.RequestTools().Name
	kept := slices.Clone(tools[:most])
	if i := slices.IndexFunc(tools, func(t phases.Tool) bool { return t.Name == loader }); i >= most {
		kept[most-1] = tools[i]
	}
	for _, t := range tools[most-1:] {
		if !slices.ContainsFunc(kept[most-1:], func(k phases.Tool) bool { return k.Name == t.Name }) {
			l.Warnf(codeToolOmitted, "the tool %s was omitted: the provider accepts %d, and there are %d", t.Name, most, len(tools))
			l.change(manifest.RequestToolGone, t.Name, "", "")
		}
	}
	return kept
}

// define fills in the schema, as all providers accept it, and the text.
func (t *Tool) define(raw json.RawMessage) error {
	schema, _, err := toolschema.Normal(raw) // what it removes is reported when a plugin's tool is admitted
	if err != nil {
		return err
	}
	if t.Schema, err = digest.JSON(nil, schema); err != nil {
		return err
	}
	text, err := canonical(map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Schema})
	t.Text = string(text)
	return err
}

// canonical encodes what was decoded from JSON.
func canonical(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return digest.JSON(nil, raw)
}

// Names translates names of tools. A host translates the name that a model calls back.
type Names struct {
	rules checks
	wire  map[string]string // names that would be another tool's without a hash
	real  map[string]string
}

func newNames(rules checks, tools []phases.Tool) Names {
	if !rules.has(ruleToolName) {
		rules = checksFor(compiler.OpenAI, "")
	}
	n := Names{rules: rules, wire: map[string]string{}, real: map[string]string{}}
	users := map[string]int{}
	for i := range tools {
		users[n.Wire(tools[i].Name)]++
	}
	for i := range tools {
		name := tools[i].Name
		wire := n.Wire(name)
		if wire != name && users[wire] > 1 {
			wire = withHash(wire, name, n.rules[ruleToolName].Max)
			n.wire[name] = wire
		}
		n.real[wire] = name
	}
	return n
}

// Wire returns the name for the provider: characters that it does not accept become "_", a first one that it does
// not accept gets a "_" in front, and a name that is too long loses its end. A name that would be another tool's then
// ends with a hash.
func (n Names) Wire(name string) string {
	if wire, ok := n.wire[name]; ok {
		return wire
	}
	return n.rules.fit(ruleToolName, name)
}

// fit makes a value match a rule whose first character may always be "_".
func (c checks) fit(id RuleID, value string) string {
	if value != "" && !c.breaks(id, value) {
		return value
	}
	r := c[id]
	fitted := strings.Map(func(x rune) rune {
		if r.match.MatchString("_" + string(x)) {
			return x
		}
		return '_'
	}, value)
	if fitted == "" || !r.match.MatchString(fitted[:1]) {
		fitted = "_" + fitted
	}
	return fitted[:min(len(fitted), r.Max)]
}

// withHash ends a value with eight digits of a hash, within most bytes.
func withHash(value, of string, most int) string {
	return value[:min(len(value), most-9)] + "_" + hashed(of)[:8]
}

// Call returns a model's call. A tool that the model made up keeps its name.
func (n Names) Call(id, wire string, arguments json.RawMessage) history.Call {
	return history.Call{ID: id, Tool: cmp.Or(n.real[wire], wire), Arguments: arguments}
}

// Tool returns the tool of the request that the provider calls wire, false for a name that the model made up.
func (n Names) Tool(wire string) (string, bool) {
	name, ok := n.real[wire]
	return name, ok
}
