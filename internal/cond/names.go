package cond

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// leaf is a name that has a value.
type leaf struct {
	name string       // as written; unique
	typ  reflect.Type // the type of the Go value behind it; nil is embedded JSON
	// grant is the input field or set that a plugin must be granted to see this; empty means everybody may.
	grant string
	read  func(*Env) (any, error)
	// text and flag read a text and a boolean without boxing; nil for what is neither. A text that is not ok is to be
	// read by read, with its error.
	text func(Env) (s string, ok bool)
	flag func(Env) bool
}

// space is a name with names below it and no value of its own. Either fields
// lists them, or open makes the leaf of any name.
type space struct {
	fields map[string]leaf
	open   func(name string) leaf
	usage  string // how an open space is written, for messages
}

// scope is everything that the conditions of one phase may name, by first name.
type scope struct {
	leaves map[string]leaf
	spaces map[string]space
	sees   func(grant string) bool // nil is all
}

const everything = "*"

func newScope(row phases.Row, sees func(grant string) bool) *scope {
	name := string(row.Phase)
	s := &scope{leaves: map[string]leaf{}, spaces: map[string]space{}, sees: sees}
	s.text("phase", func(Env) string { return name })
	s.text("dir", func(e Env) string { return e.Context.Dir })
	s.text("turn.id", func(e Env) string { return e.Context.TurnID })
	s.text("turn.mode", func(e Env) string { return string(e.Context.Mode) })
	s.text("turn.profile", func(e Env) string { return string(e.Context.Profile) })
	s.text("thread.id", func(e Env) string { return e.Context.ThreadID })
	s.text("thread.conversation_id", func(e Env) string { return e.Context.Conversation() })
	s.text("workspace.id", func(e Env) string { return e.Context.WorkspaceID })
	s.text("session.id", func(e Env) string { return e.Context.SessionID })
	s.text("agent.id", func(e Env) string { return e.Context.AgentID })
	s.text("task.id", func(e Env) string { return e.Context.TaskID })
	s.text("actor.kind", func(e Env) string { return e.Context.Actor.Kind })
	s.text("actor.id", func(e Env) string { return e.Context.Actor.ID })
	s.spaces["flags"] = space{open: flag, usage: "flags.NAME"}
	s.spaces["policy"] = space{open: policy, usage: `policy["domain/key"]`}
	tool := s.input(row)
	s.text("tool.name", func(e Env) string {
		if e.Tool != "" || tool.text == nil {
			return e.Tool
		}
		name, _ := tool.text(e) // an error is reported where input.tool is read
		return name
	})
	return s
}

func (s *scope) text(name string, read func(Env) string) {
	l := leaf{
		name: name, typ: reflect.TypeFor[string](), read: func(e *Env) (any, error) { return read(*e), nil },
		text: func(e Env) (string, bool) { return read(e), true },
	}
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

// input adds the phase's own fields and returns the one named "tool", if any.
func (s *scope) input(row phases.Row) (tool leaf) {
	zero := row.NewInput()
	if _, custom := zero.(*phases.CustomInput); custom {
		s.leaves["input"] = leaf{name: "input", grant: everything, read: readCustom}
		return leaf{}
	}
	fields := map[string]leaf{}
	t := reflect.TypeOf(zero).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		if name := jsonName(f); name != "" {
			l := leaf{name: "input." + name, typ: f.Type, grant: name, read: readField(t, i)}
			if plainType(f.Type) == nil {
				l.typ = nil
			}
			if f.Type.Kind() == reflect.String {
				l.text = textField(t, i)
			}
			if name == "tool" {
				l.grant = "" // always sent
			}
			fields[name] = l
		}
	}
	s.spaces["input"] = space{fields: fields}
	if known, ok := fields[phases.SeeFacts]; ok {
		known.name = "call.facts"
		s.spaces["call"] = space{fields: map[string]leaf{phases.SeeFacts: known}}
	}
	return fields["tool"]
}

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

func textField(t reflect.Type, i int) func(Env) (string, bool) {
	return func(e Env) (string, bool) {
		v := reflect.ValueOf(e.Input)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != t {
			return "", false
		}
		return v.Elem().Field(i).String(), true
	}
}

// readCustom reads the whole input of a host's own phase, one JSON object.
func readCustom(e *Env) (any, error) {
	in, ok := e.Input.(*phases.CustomInput)
	switch {
	case e.Input == nil || ok && (in == nil || len(in.Fields) == 0):
		return map[string]any{}, nil
	case !ok:
		return nil, fmt.Errorf("cannot be read from an input of type %T", e.Input)
	}
	return decode(in.Fields)
}

func flag(name string) leaf {
	set := func(e Env) bool { return e.Context.Flags[name] }
	return leaf{name: "flags." + name, typ: reflect.TypeFor[bool](), read: func(e *Env) (any, error) { return set(*e), nil }, flag: set}
}

// policy returns the leaf of one entry of the policy set; only that entry is decoded.
func policy(name string) leaf {
	return leaf{name: fmt.Sprintf("policy[%q]", name), grant: phases.SeePolicy, read: func(e *Env) (any, error) {
		for i := range e.Policies {
			p := &e.Policies[i]
			if p.Domain+"/"+p.Key == name {
				return decode(p.Value)
			}
		}
		return nil, nil
	}}
}

// slot is a value that a condition reads: a leaf, or the value at a path in it.
// Programs load slots by number, so nothing is read before it is needed.
type slot struct {
	name string // for messages
	leaf leaf
	path []string
	typ  reflect.Type // of the value at the end of the path
}

// step is one ".name" or ["name"] of a chain.
type step struct {
	name     string
	optional bool     // written "?.": nil before it makes the whole chain nil
	at       ast.Node // where a mistake in the name is shown
}

// chain splits "a.b.c". It fails on anything but a name followed by constant names.
func chain(node ast.Node) (root *ast.IdentifierNode, steps []step, ok bool) {
	for {
		switch n := node.(type) {
		case *ast.IdentifierNode:
			slices.Reverse(steps)
			return n, steps, true
		case *ast.ChainNode:
			node = n.Node
		case *ast.MemberNode:
			name, isName := n.Property.(*ast.StringNode)
			if !isName {
				return nil, nil, false
			}
			steps = append(steps, step{name.Value, n.Optional, name})
			node = n.Node
		default:
			return nil, nil, false
		}
	}
}

// resolve finds the slot that a chain names. It is not ok if the rest of the chain
// can be resolved only during the evaluation.
func (s *scope) resolve(root *ast.IdentifierNode, steps []step) (found slot, ok bool, err error) {
	l, isLeaf := s.leaves[root.Value]
	if !isLeaf {
		sp, isSpace := s.spaces[root.Value]
		switch {
		case !isSpace:
			return slot{}, false, mistakef(root, "unknown name %q%s", root.Value, s.nearest(root.Value))
		case len(steps) == 0 && sp.usage != "":
			return slot{}, false, mistakef(root, "%q is not a value by itself; write %s", root.Value, sp.usage)
		case len(steps) == 0:
			return slot{}, false, mistakef(root, "%q is not a value by itself; write one of %s", root.Value,
				strings.Join(slices.Sorted(maps.Keys(sp.fields)), ", "))
		}
		if l, err = sp.leaf(root.Value, steps[0]); err != nil {
			return slot{}, false, err
		}
		steps = steps[1:]
	}
	grant := l.grant
	if grant == everything && len(steps) > 0 {
		grant = steps[0].name
	}
	if grant != "" && s.sees != nil && !s.sees(grant) {
		return slot{}, false, mistakef(root, "%s may not be seen by the plugin whose condition this is: grant see: [%s], or set \"when\" for it under subscriptions", l.name, grant)
	}
	found = slot{name: l.name, leaf: l, typ: l.typ}
	for _, st := range steps {
		if known := plainType(found.typ); known != nil && known.Kind() != reflect.Map || known == nil && st.optional {
			return slot{}, false, nil
		}
		if found.typ, err = member(found.typ, found.name, st.name, st.at); err != nil {
			return slot{}, false, err
		}
		found.name += "." + st.name
		found.path = append(found.path, st.name)
	}
	return found, true, nil
}

// leaf returns a name below a space.
func (s space) leaf(root string, st step) (leaf, error) {
	if s.open != nil {
		return s.open(st.name), nil
	}
	l, ok := s.fields[st.name]
	if !ok {
		known := slices.Sorted(maps.Keys(s.fields))
		hint := suggest.DidYouMean(st.name, known)
		if hint == "" && len(known) > 0 {
			hint = "; it has " + strings.Join(known, ", ")
		}
		return leaf{}, mistakef(st.at, "%q has no field %q%s", root, st.name, hint)
	}
	return l, nil
}

// nearest suggests a first name, or a space that has such a name.
func (s *scope) nearest(name string) string {
	known := slices.Sorted(maps.Keys(s.leaves))
	roots := slices.Sorted(maps.Keys(s.spaces))
	if hint := suggest.DidYouMean(name, slices.Sorted(slices.Values(slices.Concat(known, roots)))); hint != "" {
		return hint
	}
	for _, root := range roots {
		if _, ok := s.spaces[root].fields[name]; ok {
			return fmt.Sprintf(" (did you mean %q?)", root+"."+name)
		}
	}
	return ""
}
