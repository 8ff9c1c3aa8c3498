package cedar

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// scene is what rules are evaluated on: one call of a tool, or one prompt. It implements [types.EntityGetter]. It is used by
// one goroutine.
type scene struct {
	phase          phases.Phase
	dir            string
	agent, subject types.EntityUID // the subject is the tool, or the prompt
	context        types.Record
	facts          *phases.Facts
	known          map[types.EntityUID]types.Entity // files, hosts and actions when a rule has looked at them
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

// attributes are those of an entity that are texts.
func attributes(pairs ...string) types.RecordMap {
	m := types.RecordMap{}
	for pair := range slices.Chunk(pairs, 2) {
		m[types.String(pair[0])] = types.String(pair[1])
	}
	return m
}

func entity(id, parent types.EntityUID, attrs types.RecordMap) types.Entity {
	e := types.Entity{UID: id, Attributes: types.NewRecord(attrs)}
	if parent.ID != "" {
		e.Parents = types.NewEntityUIDSet(parent)
	}
	return e
}

// newScene has what calls and prompts share.
func newScene(phase phases.Phase, d *phases.Dispatch, subject types.Entity, more types.RecordMap) *scene {
	where := &d.Context
	agent := entity(uid(typeAgent, cmp.Or(where.Agent(), "host")), uid(typeUser, where.Actor.ID),
		attributes("user", where.Actor.Name(), "session", where.SessionID, "workspace", where.WorkspaceID, "subagent", where.AgentID))
	tags := types.RecordMap{}
	for _, p := range d.Policies {
		tags[types.String(p.Domain+"/"+p.Key)] = plain(p.Value)
	}
	set := types.Entity{UID: uid(typePolicies, "turn"), Tags: types.NewRecord(tags)}
	more["dir"], more["mode"], more["policies"] = uid(typeFile, where.Dir), types.String(where.Mode), set.UID
	return &scene{
		phase: phase, dir: where.Dir, agent: agent.UID, subject: subject.UID, context: types.NewRecord(more), facts: &phases.Facts{},
		known: map[types.EntityUID]types.Entity{agent.UID: agent, subject.UID: subject, set.UID: set},
	}
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
	programs := make([]string, len(facts.Commands))
	for i := range facts.Commands {
		programs[i] = facts.Commands[i].Program
	}
	tool := toolOf(in)
	sc := newScene(phases.ToolPreCall, d, tool, types.RecordMap{
		"tool": tool.UID, "arguments": types.String(in.Arguments), "facts": types.NewRecord(types.RecordMap{
			"unparsed": types.Boolean(facts.Unparsed), "why": types.String(facts.Why), "programs": texts(programs), "reads": texts(facts.Reads), "writes": texts(facts.Writes),
			"names": texts(facts.Names), "outside": texts(facts.Outside), "secrets": texts(facts.Secrets), "hosts": texts(facts.Hosts),
		}),
	})
	sc.facts = facts
	for i := range facts.Commands {
		c := commandOf(i, &facts.Commands[i])
		sc.known[c.UID] = c
	}
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

// commandOf has the number of a command as its id: different words may make the same text.
func commandOf(i int, c *phases.Command) types.Entity {
	attrs := attributes("program", c.Program, "subcommand", subcommand(c), "text", strings.Join(c.Words, " "))
	attrs["words"], attrs["options"] = texts(c.Words), texts(c.Options)
	return entity(uid(typeCommand, strconv.Itoa(i)), types.EntityUID{}, attrs)
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

func (sc *scene) itself() []string { return []string{string(sc.subject.ID)} }

func (sc *scene) commands() []string {
	ids := make([]string, len(sc.facts.Commands))
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	return ids
}

// reads are the files that a call reads, and those whose secrets it gets at although it names no file that has them.
func (sc *scene) reads() []string {
	list := slices.Clone(sc.facts.Reads)
	for _, secret := range sc.facts.Secrets {
		if !slices.ContainsFunc(slices.Concat(list, sc.facts.Writes, sc.facts.Names), func(path string) bool { return within(secret, path) }) {
			list = append(list, secret)
		}
	}
	return list
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
	case a.resource == typeCommand:
		i, _ := strconv.Atoi(id)
		id = strings.Join(sc.facts.Commands[i].Words, " ")
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
	e, ok := sc.known[id]
	if ok {
		return e, true
	}
	switch id.Type {
	case typeFile:
		e = sc.file(string(id.ID))
	case typeHost:
		e = hostOf(string(id.ID))
	case typeAction:
		e = resolvedModel().Actions[id].Entity
	default:
		return e, false
	}
	sc.known[id] = e
	return e, true
}

func (sc *scene) file(path string) types.Entity {
	attrs := attributes("path", path, "name", filepath.Base(path), "extension", filepath.Ext(path))
	attrs["outside"] = types.Boolean(slices.Contains(sc.facts.Outside, path))
	attrs["secret"] = types.Boolean(slices.ContainsFunc(sc.facts.Secrets, func(secret string) bool { return within(secret, path) }))
	parent := filepath.Dir(path)
	if parent == path || !filepath.IsAbs(path) {
		parent = ""
	}
	return entity(uid(typeFile, path), uid(typeFile, parent), attrs)
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
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
