package cond

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// leaf is a name that has a value.
type leaf struct {
	// name is how it is written, for messages; no two leaves share one.
	name  string
	shape *shape
	// grant is what a plugin must be granted to see it: a field of the input or a
	// set; empty where everybody may.
	grant string
	// read takes the value out of an environment, as its shape says.
	read func(*Env) (any, error)
}

// space is a name with names below it and no value of its own.
type space struct {
	// fields are the names below.
	fields map[string]leaf
	// open makes the leaf of any name below, where all names are possible.
	open func(name string) leaf
	// usage says how it is written, for messages.
	usage string
}

// scope is everything that the conditions of one phase may name.
type scope struct {
	// leaves and spaces by first name; no name is in both.
	leaves map[string]leaf
	spaces map[string]space
	// sees says what of what needs a grant may be named; nil for all.
	sees func(grant string) bool
}

// newScope is the vocabulary of the package comment, for one phase.
func newScope(row phases.Row, sees func(grant string) bool) *scope {
	name := string(row.Phase)
	s := &scope{leaves: map[string]leaf{}, spaces: map[string]space{}, sees: sees}
	s.text("phase", func(*Env) string { return name })
	s.text("dir", func(e *Env) string { return e.Context.Dir })
	s.text("turn.id", func(e *Env) string { return e.Context.TurnID })
	s.text("turn.mode", func(e *Env) string { return string(e.Context.Mode) })
	s.text("turn.profile", func(e *Env) string { return string(e.Context.Profile) })
	s.text("thread.id", func(e *Env) string { return e.Context.ThreadID })
	s.text("thread.conversation_id", func(e *Env) string { return e.Context.Conversation() })
	s.text("workspace.id", func(e *Env) string { return e.Context.WorkspaceID })
	s.text("session.id", func(e *Env) string { return e.Context.SessionID })
	s.text("agent.id", func(e *Env) string { return e.Context.AgentID })
	s.text("task.id", func(e *Env) string { return e.Context.TaskID })
	s.text("actor.kind", func(e *Env) string { return e.Context.Actor.Kind })
	s.text("actor.id", func(e *Env) string { return e.Context.Actor.ID })
	s.spaces["flags"] = space{open: flag, usage: "flags.NAME"}
	s.spaces["policy"] = space{open: policy, usage: `policy["domain/key"]`}
	tool := s.input(row)
	s.text("tool.name", func(e *Env) string {
		if e.Tool != "" || tool.read == nil {
			return e.Tool
		}
		v, err := tool.read(e)
		name, isText := v.(string)
		if err != nil || !isText {
			return "" // another phase's input; reading input.tool says so
		}
		return name
	})
	return s
}

// text adds a name, or a name below a space, that is a text.
func (s *scope) text(name string, read func(*Env) string) {
	l := leaf{name: name, shape: &shape{kind: kindText}, read: func(e *Env) (any, error) { return read(e), nil }}
	root, field, below := strings.Cut(name, ".")
	if !below {
		s.leaves[name] = l
		return
	}
	if _, ok := s.spaces[root]; !ok {
		s.spaces[root] = space{fields: map[string]leaf{}}
	}
	s.spaces[root].fields[field] = l
}

// input adds the phase's own fields and returns the one that names a tool, if
// there is one.
func (s *scope) input(row phases.Row) (tool leaf) {
	zero := row.NewInput()
	if _, custom := zero.(*phases.CustomInput); custom {
		s.leaves["input"] = leaf{name: "input", shape: &shape{}, grant: everything, read: readCustom}
		return leaf{}
	}
	fields := map[string]leaf{}
	t := reflect.TypeOf(zero).Elem()
	for i := range t.NumField() {
		name := jsonName(t.Field(i))
		if name == "" {
			continue
		}
		fields[name] = leaf{name: "input." + name, shape: shapeOf(t.Field(i).Type), grant: name, read: readField(t, i)}
	}
	if tool, ok := fields["tool"]; ok {
		tool.grant = "" // always sent
		fields["tool"] = tool
	}
	s.spaces["input"] = space{fields: fields}
	return fields["tool"]
}

// everything is the grant of all fields of an input.
const everything = "*"

// missing returns the grant without which a chain that begins with l may not be
// evaluated; "" if there is none.
func (s *scope) missing(l leaf, steps []step) string {
	grant := l.grant
	if grant == everything && len(steps) > 0 {
		grant = steps[0].name
	}
	if grant == "" || s.sees == nil || s.sees(grant) {
		return ""
	}
	return grant
}

// readField reads one field of an input. No input at all is a zero one.
func readField(t reflect.Type, i int) func(*Env) (any, error) {
	return func(e *Env) (any, error) {
		if e.Input == nil {
			return plain(reflect.Zero(t.Field(i).Type))
		}
		v := reflect.ValueOf(e.Input)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != t {
			return nil, fmt.Errorf("cannot be read from an input of type %T", e.Input)
		}
		return plain(v.Elem().Field(i))
	}
}

// readCustom reads the whole input of a phase of a host's own, which is one
// JSON object of any form. No input at all is an empty one.
func readCustom(e *Env) (any, error) {
	in, ok := e.Input.(*phases.CustomInput)
	switch {
	case e.Input == nil || ok && in == nil:
		return map[string]any{}, nil
	case !ok:
		return nil, fmt.Errorf("cannot be read from an input of type %T", e.Input)
	case len(in.Fields) == 0:
		return map[string]any{}, nil
	}
	return decode(in.Fields)
}

// flag makes the leaf of one of the host's switches.
func flag(name string) leaf {
	return leaf{name: "flags." + name, shape: &shape{kind: kindBool}, read: func(e *Env) (any, error) {
		return e.Context.Flags[name], nil
	}}
}

// policy makes the leaf of one entry of the policy set. Only that entry is
// decoded.
func policy(name string) leaf {
	return leaf{name: fmt.Sprintf("policy[%q]", name), shape: &shape{}, grant: phases.SeePolicy, read: func(e *Env) (any, error) {
		for i := range e.Policies {
			if p := &e.Policies[i]; isPolicy(p, name) {
				return decode(p.Value)
			}
		}
		return nil, nil
	}}
}

// isPolicy compares domain/key with a name without joining the two.
func isPolicy(p *phases.PolicyEntry, name string) bool {
	rest, ok := strings.CutPrefix(name, p.Domain)
	return ok && len(rest) == len(p.Key)+1 && rest[0] == '/' && rest[1:] == p.Key
}

// names are all first names, sorted.
func (s *scope) names() []string {
	return slices.Sorted(maps.Keys(s.all()))
}

// all is the set of all first names.
func (s *scope) all() map[string]bool {
	all := map[string]bool{}
	for name := range s.leaves {
		all[name] = true
	}
	for name := range s.spaces {
		all[name] = true
	}
	return all
}

// nearest is the end of a message about an unknown first name: one that is
// near, or the space in which there is such a name.
func (s *scope) nearest(name string) string {
	if hint := phases.DidYouMean(name, s.names()); hint != "" {
		return hint
	}
	for _, root := range slices.Sorted(maps.Keys(s.spaces)) {
		if _, ok := s.spaces[root].fields[name]; ok {
			return fmt.Sprintf(" (did you mean %q?)", root+"."+name)
		}
	}
	return ""
}

// how says how a space is written, for a message.
func (s space) how() string {
	if s.usage != "" {
		return s.usage
	}
	return "one of " + strings.Join(slices.Sorted(maps.Keys(s.fields)), ", ")
}
