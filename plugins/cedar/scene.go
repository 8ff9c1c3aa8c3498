package cedar

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// scene is what rules are evaluated on: one call of a tool, or one prompt. It implements [types.EntityGetter]; files and
// hosts are made when a rule looks at them. It is used by one goroutine.
type scene struct {
	phase    phases.Phase
	dir      string
	agent    types.Entity
	subject  types.Entity // the tool, or the prompt
	policies types.Entity
	context  types.Record
	facts    *phases.Facts
	commands map[types.String]types.Entity
}

func uid(entity types.EntityType, id string) types.EntityUID {
	return types.NewEntityUID(entity, types.String(id))
}

func actionUID(name string) types.EntityUID { return uid(typeAction, name) }

func texts(list []string) types.Set {
	values := make([]types.Value, len(list))
	for i, s := range list {
		values[i] = types.String(s)
	}
	return types.NewSet(values...)
}

// strings are the attributes of an entity that are texts.
func attributes(pairs ...string) types.RecordMap {
	m := types.RecordMap{}
	for pair := range slices.Chunk(pairs, 2) {
		m[types.String(pair[0])] = types.String(pair[1])
	}
	return m
}

func entity(id types.EntityUID, parent types.EntityUID, attrs types.RecordMap) types.Entity {
	e := types.Entity{UID: id, Attributes: types.NewRecord(attrs)}
	if parent.ID != "" {
		e.Parents = types.NewEntityUIDSet(parent)
	}
	return e
}

// newScene has what calls and prompts share.
func newScene(phase phases.Phase, d *phases.Dispatch, subject types.Entity, more types.RecordMap) *scene {
	where := &d.Context
	sc := &scene{phase: phase, dir: where.Dir, subject: subject, facts: &phases.Facts{}}
	sc.agent = entity(uid(typeAgent, cmp.Or(where.Agent(), "host")), uid(typeUser, where.Actor.ID),
		attributes("user", where.Actor.Name(), "session", where.SessionID, "workspace", where.WorkspaceID, "subagent", where.AgentID))
	tags := types.RecordMap{}
	for _, p := range d.Policies {
		tags[types.String(p.Domain+"/"+p.Key)] = plain(p.Value)
	}
	sc.policies = types.Entity{UID: uid(typePolicies, "turn"), Tags: types.NewRecord(tags)}
	more["dir"], more["mode"], more["policies"] = uid(typeFile, where.Dir), types.String(where.Mode), sc.policies.UID
	sc.context = types.NewRecord(more)
	return sc
}

// plain is a JSON text without its quotes, and other JSON as it is.
func plain(value json.RawMessage) types.String {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return types.String(s)
	}
	return types.String(value)
}

// newCall is the scene of a call.
func newCall(d *phases.Dispatch, in *phases.ToolPreCallInput, facts *phases.Facts) *scene {
	commands, programs := map[types.String]types.Entity{}, []string{}
	for i := range facts.Commands {
		c := commandOf(&facts.Commands[i])
		commands[c.UID.ID] = c
		programs = append(programs, facts.Commands[i].Program)
	}
	tool := toolOf(in)
	sc := newScene(phases.ToolPreCall, d, tool, types.RecordMap{
		"tool": tool.UID, "arguments": types.String(in.Arguments), "facts": types.NewRecord(types.RecordMap{
			"unparsed": types.Boolean(facts.Unparsed), "why": types.String(facts.Why), "programs": texts(programs), "reads": texts(facts.Reads), "writes": texts(facts.Writes),
			"names": texts(facts.Names), "outside": texts(facts.Outside), "secrets": texts(facts.Secrets), "hosts": texts(facts.Hosts),
		}),
	})
	sc.facts, sc.commands = facts, commands
	return sc
}

// newPrompt is the scene of a prompt.
func newPrompt(d *phases.Dispatch, in *phases.PrePolicyInput) *scene {
	prompt := entity(uid(typePrompt, d.Context.TurnID), types.EntityUID{}, attributes("text", in.UserText.Value))
	return newScene(phases.PrePolicy, d, prompt, attributes("model", in.Model, "provider", in.Provider))
}

func toolOf(in *phases.ToolPreCallInput) types.Entity {
	server := ""
	if rest, ok := strings.CutPrefix(in.Tool, "mcp__"); ok {
		server, _, _ = strings.Cut(rest, "__")
	}
	e := entity(uid(typeTool, in.Tool), uid(typeServer, server), attributes("name", in.Tool, "server", server))
	var arguments map[string]json.RawMessage
	_ = json.Unmarshal(in.Arguments, &arguments) // others than an object have no names
	tags := types.RecordMap{}
	for name, value := range arguments {
		tags[types.String(name)] = plain(value)
	}
	e.Tags = types.NewRecord(tags)
	return e
}

func commandOf(c *phases.Command) types.Entity {
	line := strings.Join(c.Words, " ")
	attrs := attributes("program", c.Program, "subcommand", subcommand(c), "text", line)
	attrs["words"], attrs["options"] = texts(c.Words), texts(c.Options)
	return entity(uid(typeCommand, line), types.EntityUID{}, attrs)
}

// valued are options of programs with subcommands that take the next word.
//
//nolint:gochecknoglobals // an immutable table
var valued = map[string][]string{
	"git": {"-C", "-c", "--git-dir", "--work-tree", "--namespace"}, "docker": {"-H", "-c", "-l", "--host", "--context", "--config", "--log-level"},
	"kubectl": {"-n", "-s", "--namespace", "--context", "--cluster", "--kubeconfig", "--server", "--user"}, "gh": {"-R", "--repo"}, "npm": {"--prefix", "-w"},
}

// subcommand is the first word behind the program that is neither an option nor the value of one.
func subcommand(c *phases.Command) string {
	for i := 1; i < len(c.Words); i++ {
		switch word := c.Words[i]; {
		case slices.Contains(valued[c.Program], word):
			i++
		case !strings.HasPrefix(word, "-"):
			return word
		}
	}
	return ""
}

func (sc *scene) itself() []string { return []string{string(sc.subject.UID.ID)} }

func (sc *scene) commandLines() []string {
	var lines []string
	for _, c := range sc.facts.Commands {
		lines = append(lines, strings.Join(c.Words, " "))
	}
	return lines
}

func (sc *scene) unparsed() []string {
	if !sc.facts.Unparsed {
		return nil
	}
	return sc.itself()
}

// describe says what a request is, for reasons.
func (sc *scene) describe(a *action, id string) string {
	switch {
	case a.name == "unknown":
		id = sc.facts.Why
	case a.resource == typePrompt:
		id = "a prompt"
	case a.resource == typeFile:
		if rel, err := filepath.Rel(sc.dir, id); err == nil && filepath.IsLocal(rel) {
			id = rel
		}
	}
	line, _ := sdk.CutLine(id, maxObject)
	return a.verb + " " + sdk.OneLine(line)
}

// Get implements [types.EntityGetter].
func (sc *scene) Get(id types.EntityUID) (types.Entity, bool) {
	switch id {
	case sc.agent.UID:
		return sc.agent, true
	case sc.subject.UID:
		return sc.subject, true
	case sc.policies.UID:
		return sc.policies, true
	}
	switch name := string(id.ID); id.Type {
	case typeCommand:
		c, ok := sc.commands[id.ID]
		return c, ok
	case typeFile:
		return sc.file(name), true
	case typeHost:
		return hostOf(name), true
	case typeAction:
		i := slices.IndexFunc(actions, func(a action) bool { return a.name == name })
		return entity(id, actionUID(string(actions[max(i, 0)].phase)), nil), i >= 0
	}
	return types.Entity{}, false
}

func (sc *scene) file(path string) types.Entity {
	attrs := attributes("path", path, "name", filepath.Base(path), "extension", filepath.Ext(path))
	attrs["outside"], attrs["secret"] = types.Boolean(slices.Contains(sc.facts.Outside, path)), types.Boolean(slices.Contains(sc.facts.Secrets, path))
	parent := filepath.Dir(path)
	if parent == path || !filepath.IsAbs(path) {
		parent = ""
	}
	return entity(uid(typeFile, path), uid(typeFile, parent), attrs)
}

func hostOf(name string) types.Entity {
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	domain := ""
	if err != nil { // it is not an address
		_, domain, _ = strings.Cut(name, ".")
	}
	attrs := attributes("name", name)
	attrs["local"] = types.Boolean(name == "localhost" || strings.HasSuffix(name, ".localhost") || addr.IsLoopback() || addr.IsUnspecified())
	return entity(uid(typeHost, name), uid(typeHost, domain), attrs)
}
