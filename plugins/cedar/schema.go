package cedar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/grapnelhq/grapnel/phases"
)

// The entity types.
const (
	typeAgent    = "Agent"
	typeUser     = "User"
	typeTool     = "Tool"
	typeServer   = "Server"
	typeCommand  = "Command"
	typeFile     = "File"
	typeHost     = "Host"
	typePrompt   = "Prompt"
	typePolicies = "Policies"
	typeAction   = "Action"
)

// attribute is one attribute of an entity or record. Its typ is in Cedar's words: String, Bool, Set<String>, or a name.
type attribute struct{ name, typ, doc string }

// definition is an entity type, or a record type.
type definition struct {
	name, doc string
	parent    types.EntityType // the one type of its parents; empty for none
	tags      bool             // it has tags, which are texts
	attrs     []attribute
}

// action is what a rule can be about.
type action struct {
	name     string
	phase    phases.Phase // its group
	resource types.EntityType
	verb     string // for reasons: "reads"
	doc      string
	on       func(*scene) []string // the ids of the resources
}

// records maps each phase that has actions to the type of their context.
//
//nolint:gochecknoglobals // an immutable table
var records = map[phases.Phase]string{phases.ToolPreCall: "Call", phases.PrePolicy: "Turn"}

//nolint:gochecknoglobals // an immutable table
var (
	entities = []definition{
		{typeAgent, `who acts: Agent::"claude-code", or Agent::"host" for a program with a loop of its own`, typeUser, false, []attribute{
			{"user", "String", "who caused the turn, such as user:ada"}, {"session", "String", ""}, {"workspace", "String", ""}, {"subagent", "String", "the agent's own id, empty for none"},
		}},
		{typeUser, `a person, by the host's id: principal in User::"ada"`, "", false, nil},
		{typeTool, `a tool: Tool::"Bash". Its tags are the arguments of the call, other JSON as text: resource.hasTag("query")`, typeServer, true, []attribute{{"name", "String", ""}, {"server", "String", "of MCP, or empty"}}},
		{typeServer, `an MCP server: Tool::"mcp__github__search" is in Server::"github"`, "", false, nil},
		{typeCommand, `one simple command of a shell`, "", false, []attribute{
			{"program", "String", "without its directory; sudo, env and the like are left out"},
			{"subcommand", "String", "the first word that is no option: push"},
			{"words", "Set<String>", "all words; an unknown part is …"},
			{"options", "Set<String>", "one by one: -rf is -r and -f, --out=x is --out"},
			{"text", "String", "all words, with blanks"},
		}},
		{typeFile, `a file or directory: File::"/etc/hosts" is in File::"/etc"`, typeFile, false, []attribute{
			{"path", "String", "absolute, links resolved"}, {"name", "String", "the last part"}, {"extension", "String", ".go"}, {"outside", "Bool", "not in the project"}, {"secret", "Bool", "has keys or passwords, or is a directory with such a file that the call gets at"},
		}},
		{typeHost, `a host: Host::"api.example.com" is in Host::"example.com"`, typeHost, false, []attribute{{"name", "String", ""}, {"local", "Bool", "this machine"}}},
		{typePrompt, `what a person or program says to the agent`, "", false, []attribute{{"text", "String", ""}}},
		{typePolicies, `what plugins have set for the turn, as tags: context.policies.getTag("guard/level")`, "", true, nil},
	}
	contexts = []definition{
		{name: "Facts", doc: "what is known of the whole call", attrs: []attribute{
			{"unparsed", "Bool", "a part could not be read"},
			{"why", "String", "what could not"},
			{"programs", "Set<String>", ""},
			{"reads", "Set<String>", "paths, as in the next four"},
			{"writes", "Set<String>", ""},
			{"names", "Set<String>", ""},
			{"outside", "Set<String>", ""},
			{"secrets", "Set<String>", ""},
			{"hosts", "Set<String>", ""},
		}},
		{name: "Call", doc: "context of a call", attrs: []attribute{
			{"tool", typeTool, ""}, {"arguments", "String", "JSON"}, {"dir", typeFile, "the working directory"}, {"mode", "String", "of the turn"}, {"policies", typePolicies, ""}, {"facts", "Facts", ""},
		}},
		{name: "Turn", doc: "context of a prompt", attrs: []attribute{
			{"model", "String", ""}, {"provider", "String", ""}, {"dir", typeFile, ""}, {"mode", "String", ""}, {"policies", typePolicies, ""},
		}},
	}
	actions = []action{
		{"call", phases.ToolPreCall, typeTool, "calls", "each call of a tool", (*scene).itself},
		{"run", phases.ToolPreCall, typeCommand, "runs", "each simple command in it", (*scene).commands},
		{"read", phases.ToolPreCall, typeFile, "reads", "each file that it reads", (*scene).reads},
		{"write", phases.ToolPreCall, typeFile, "writes", "each file that it writes, moves or removes", func(sc *scene) []string { return sc.facts.Writes }},
		{"name", phases.ToolPreCall, typeFile, "names", "each file that a command names for an unknown use", func(sc *scene) []string { return sc.facts.Names }},
		{"connect", phases.ToolPreCall, typeHost, "connects to", "each host of an address in it", func(sc *scene) []string { return sc.facts.Hosts }},
		{"unknown", phases.ToolPreCall, typeTool, "does what is not known:", "a call of which a part could not be read", (*scene).unparsed},
		{"prompt", phases.PrePolicy, typePrompt, "says", "each prompt; judged if a rule names this action", (*scene).itself},
	}
)

// modelNames are all names that a rule may use.
func modelNames() []string {
	var names []string
	for _, d := range slices.Concat(entities, contexts) {
		names = append(names, d.name)
		for _, a := range d.attrs {
			names = append(names, a.name)
		}
	}
	for _, a := range actions {
		names = append(names, a.name)
	}
	return names
}

// schema is the model.
func schema() *resolved.Schema {
	s := &resolved.Schema{Entities: map[types.EntityType]resolved.Entity{}, Actions: map[types.EntityUID]resolved.Action{}}
	for _, d := range entities {
		e := resolved.Entity{Name: types.EntityType(d.name), Shape: recordOf(d.attrs)}
		if d.parent != "" {
			e.ParentTypes = []types.EntityType{d.parent}
		}
		if d.tags {
			e.Tags = resolved.StringType{}
		}
		s.Entities[e.Name] = e
	}
	for _, a := range actions {
		uid, group := actionUID(a.name), actionUID(string(a.phase))
		s.Actions[group] = resolved.Action{Entity: types.Entity{UID: group}}
		s.Actions[uid] = resolved.Action{
			Entity: types.Entity{UID: uid, Parents: types.NewEntityUIDSet(group)},
			AppliesTo: &resolved.AppliesTo{
				Principals: []types.EntityType{typeAgent}, Resources: []types.EntityType{a.resource}, Context: recordOf(contexts[indexOf(records[a.phase])].attrs),
			},
		}
	}
	return s
}

func recordOf(attrs []attribute) resolved.RecordType {
	r := resolved.RecordType{}
	for _, a := range attrs {
		r[types.String(a.name)] = resolved.Attribute{Type: typeOf(a.typ)}
	}
	return r
}

func typeOf(name string) resolved.IsType {
	switch name {
	case "String":
		return resolved.StringType{}
	case "Bool":
		return resolved.BoolType{}
	case "Set<String>":
		return resolved.SetType{Element: resolved.StringType{}}
	}
	if i := indexOf(name); i >= 0 {
		return recordOf(contexts[i].attrs)
	}
	return resolved.EntityType(name)
}

// indexOf is the place of a record type in contexts, or -1.
func indexOf(name string) int {
	return slices.IndexFunc(contexts, func(d definition) bool { return d.name == name })
}

// Schema is the model in Cedar's own words, for editors and readers.
func Schema() string {
	var b strings.Builder
	for _, d := range entities {
		fmt.Fprintf(&b, "// %s.\nentity %s", d.doc, d.name)
		if d.parent != "" {
			fmt.Fprintf(&b, " in [%s]", d.parent)
		}
		if d.attrs != nil {
			b.WriteString(" = {\n")
			writeAttributes(&b, d.attrs)
			b.WriteByte('}')
		}
		if d.tags {
			b.WriteString(" tags String")
		}
		b.WriteString(";\n\n")
	}
	for _, d := range contexts {
		fmt.Fprintf(&b, "// %s.\ntype %s = {\n", d.doc, d.name)
		writeAttributes(&b, d.attrs)
		b.WriteString("};\n\n")
	}
	for i, a := range actions {
		if i == 0 || actions[i-1].phase != a.phase {
			fmt.Fprintf(&b, "action %q;\n", a.phase)
		}
		fmt.Fprintf(&b, "// %s.\naction %q in [Action::%q] appliesTo {principal: [%s], resource: [%s], context: %s};\n", a.doc, a.name, a.phase, typeAgent, a.resource, records[a.phase])
	}
	return b.String()
}

func writeAttributes(b *strings.Builder, attrs []attribute) {
	for _, a := range attrs {
		fmt.Fprintf(b, "  %s: %s,", a.name, a.typ)
		if a.doc != "" {
			b.WriteString(" // " + a.doc)
		}
		b.WriteByte('\n')
	}
}

// Table is the model in short, a row for each action: its name, what is judged, the type of its resource, and the names of
// that type's attributes.
func Table() [][4]string {
	var rows [][4]string
	for _, a := range actions {
		names := []string{}
		for _, d := range entities {
			for _, attr := range d.attrs {
				if d.name == string(a.resource) {
					names = append(names, attr.name)
				}
			}
		}
		rows = append(rows, [4]string{a.name, a.doc, string(a.resource), strings.Join(names, " ")})
	}
	return rows
}
