package install

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// File is a JSON file of a host, as text whose formatting is kept.
type File struct {
	host *Host
	// isHooks says that the file is for hooks; key is the member that has MCP servers, if it is for those.
	isHooks bool
	key     string

	root   hujson.Value
	values map[string]any // what Parse has read
	mark   string         // the byte order mark, if there is one
	end    string         // of a line
	unit   string         // of indentation
}

const byteOrderMark = "\ufeff"

// parse reads a file; one that is empty, or not there, is an object without members. The error of one that cannot be read has
// the line and column.
func (h *Host) parse(data []byte, hooks bool, key string) (*File, error) {
	f := &File{host: h, isHooks: hooks, key: key, end: "\n", unit: "  "}
	text, marked := bytes.CutPrefix(data, []byte(byteOrderMark))
	if marked {
		f.mark = byteOrderMark
	}
	if bytes.Contains(text, []byte("\r\n")) {
		f.end = "\r\n"
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + f.end)
	}
	var err error
	if f.root, err = hujson.Parse(bytes.Clone(text)); err != nil {
		return nil, fmt.Errorf("it is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	plain := f.root.Clone()
	plain.Standardize()
	if err := jsonscan.Unique(plain.Pack()); err != nil {
		return nil, err
	}
	root, ok := f.root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	if err := json.Unmarshal(plain.Pack(), &f.values); err != nil {
		return nil, err
	}
	if len(root.Members) > 0 {
		if at := indentOf(root.Members[0].Name.BeforeExtra); at != "" {
			f.unit = at
		}
	}
	return f, f.check(root)
}

// check makes sure that the places where entries belong have the shape that the host gives them.
func (f *File) check(root *hujson.Object) error {
	if v := find(root, f.key); f.key != "" && v != nil && v.Value.Kind() != '{' {
		return f.errorAt(v, f.key, "an object")
	}
	if v := find(root, f.host.Install.ModSeats); f.isHooks && f.host.Install.Mod != nil && v != nil && v.Value.Kind() != '[' {
		return f.errorAt(v, f.host.Install.ModSeats, "a list")
	}
	hooks := find(root, "hooks")
	if hooks == nil || !f.isHooks {
		return nil
	}
	events, ok := hooks.Value.(*hujson.Object)
	if !ok {
		return f.errorAt(hooks, "hooks", "an object")
	}
	for i := range events.Members {
		m := &events.Members[i]
		if _, ok := m.Value.Value.(*hujson.Array); !ok && f.host.Events[nameOf(m)].Step != agent.StepNone {
			return f.errorAt(&m.Value, "hooks."+nameOf(m), "a list")
		}
	}
	return nil
}

func (f *File) errorAt(v *hujson.Value, place, want string) error {
	return fmt.Errorf("line %d: %s is not %s", f.line(v), place, want)
}

func (f *File) line(v *hujson.Value) int {
	return 1 + bytes.Count(f.root.Pack()[:v.StartOffset], []byte("\n"))
}

// Bytes is the text of the file.
func (f *File) Bytes() []byte { return append([]byte(f.mark), f.root.Pack()...) }

// Flag reports whether a member of the file is true.
func (f *File) Flag(name string) bool {
	set, _ := f.values[name].(bool)
	return set
}

// Environment returns the names of the variables that the file sets for the agent and its hooks.
func (f *File) Environment() []string {
	env, _ := f.values["env"].(map[string]any)
	return slices.Collect(maps.Keys(env))
}

// Definition is a hook of ours as it stands in a file.
type Definition struct {
	Event string
	agent.Handler
	// Wait is its timeout in the host's unit; 0 where the file does not say.
	Wait float64
	// Group and Index are the places of its group below the event, and of itself in the group.
	Group, Index int

	entry json.RawMessage
}

// Call is the command or the address, as a person reads it.
func (d *Definition) Call() string {
	words := append([]string{cmp.Or(d.URL, d.Command, d.Bash)}, d.Args...)
	for i := range d.Args {
		words[i+1] = agent.Quote(words[i+1])
	}
	return strings.Join(words, " ")
}

// Ours are the hooks that carry our mark, in the order of the file.
func (f *File) Ours() []Definition {
	hooks := f.hooks()
	if hooks == nil {
		return nil
	}
	var found []Definition
	for _, m := range hooks.Members {
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for i := range list.Elements {
			whole := standard(&list.Elements[i])
			for j, v := range f.handlers(&list.Elements[i]) {
				d := Definition{Event: nameOf(&m), Group: i, Index: j, entry: whole}
				var timeout struct {
					Wait  float64 `json:"timeout"`
					Other float64 `json:"timeoutSec"`
				}
				if text := standard(v); json.Unmarshal(text, &d.Handler) != nil || !isOurs(&d.Handler) || json.Unmarshal(text, &timeout) != nil {
					continue
				}
				d.Wait = max(timeout.Wait, timeout.Other)
				found = append(found, d)
			}
		}
	}
	return found
}

// Standing are the entries with hooks of ours, each with its event, and the list in which the host's mod stands first.
func (f *File) Standing() (all []string) {
	for _, d := range f.Ours() {
		all = append(all, d.Event+" "+string(d.entry))
	}
	if _, at := f.seat(); at == 0 {
		all = append(all, f.host.Install.ModSeats)
	}
	return all
}

// seat is the list in which the host's mod has a place, and that place; -1 for none.
func (f *File) seat() (list *hujson.Array, at int) {
	v := find(f.object(), f.host.Install.ModSeats)
	if v == nil || !f.isHooks || f.host.Install.Mod == nil {
		return nil, -1
	}
	list = v.Value.(*hujson.Array) //nolint:forcetypeassert // Parse has looked
	return list, slices.IndexFunc(list.Elements, func(e hujson.Value) bool { return agent.TextOf(standard(&e)) == f.host.Install.ModSeat })
}

// Has implements [Document].
func (f *File) Has(w *Wanted) bool {
	text, ours := f.server()
	if w.Server == nil || f.key == "" {
		if ours {
			return false
		}
	} else if !ours || !bytes.Equal(text, agent.Marshal(w.Server)) {
		return false
	}
	if !f.isHooks {
		return true
	}
	if _, at := f.seat(); len(w.Files) > 0 && at != 0 || len(w.Files) == 0 && at >= 0 {
		return false
	}
	found := f.Ours()
	return len(found) == len(w.Entries) && !slices.ContainsFunc(w.Entries, func(e Entry) bool {
		return !slices.ContainsFunc(found, func(d Definition) bool { return d.Event == e.Event && bytes.Equal(d.entry, e.value) })
	})
}

// Serves implements [Document].
func (f *File) Serves() []string {
	text, ours := f.server()
	var s agent.Server
	if !ours || json.Unmarshal(text, &s) != nil {
		return nil
	}
	return append([]string{s.Command}, s.Args...)
}

// server is the entry of our name, as compact JSON, and whether it carries our mark.
func (f *File) server() (text json.RawMessage, ours bool) {
	servers := f.member(f.key)
	if f.key == "" || servers == nil {
		return nil, false
	}
	v := find(servers, serverName)
	if v == nil {
		return nil, false
	}
	var s agent.Server
	text = standard(v)
	return text, json.Unmarshal(text, &s) == nil && isOurServer(&s)
}

// handlers are the hooks in one element below an event.
func (f *File) handlers(element *hujson.Value) []*hujson.Value {
	if !f.host.Install.Nested {
		return []*hujson.Value{element}
	}
	var all []*hujson.Value
	if list := f.inner(element); list != nil {
		for i := range list.Elements {
			all = append(all, &list.Elements[i])
		}
	}
	return all
}

// inner is the list of hooks in a group; nil if there is none.
func (f *File) inner(element *hujson.Value) *hujson.Array {
	group, ok := element.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	hooks := find(group, "hooks")
	if hooks == nil {
		return nil
	}
	list, _ := hooks.Value.(*hujson.Array)
	return list
}

func (f *File) hooks() *hujson.Object {
	if !f.isHooks {
		return nil
	}
	return f.member("hooks")
}

// object is the file.
func (f *File) object() *hujson.Object {
	return f.root.Value.(*hujson.Object) //nolint:forcetypeassert // Parse has looked
}

// member is the object under a name; nil if there is none.
func (f *File) member(name string) *hujson.Object {
	v := find(f.object(), name)
	if v == nil {
		return nil
	}
	o, _ := v.Value.(*hujson.Object)
	return o
}

// find is the value of a member.
func find(o *hujson.Object, name string) *hujson.Value {
	for i := range o.Members {
		if nameOf(&o.Members[i]) == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

func nameOf(m *hujson.ObjectMember) string {
	return m.Name.Value.(hujson.Literal).String() //nolint:forcetypeassert // names are texts
}

// standard is a value as compact JSON.
func standard(v *hujson.Value) json.RawMessage {
	plain := v.Clone()
	plain.Minimize()
	return plain.Pack()
}
