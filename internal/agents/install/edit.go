package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// Add implements [Document]: what is new stands behind what is there.
func (f *File) Add(w *Wanted) error {
	if err := f.addServer(w.Server); err != nil || !f.isHooks {
		return err
	}
	root := f.object()
	if len(w.Files) > 0 {
		f.addSeat(root)
	}
	if len(w.Entries) == 0 {
		return nil
	}
	if f.host.Install.Versioned && find(root, "version") == nil {
		f.add(root, "", "version", []byte("1"))
	}
	hooks := f.ensure(root, "", "hooks", "{}").(*hujson.Object) //nolint:forcetypeassert // Parse has looked
	outer := f.childIndent(root, "")
	for _, e := range w.Entries {
		f.add(f.ensure(hooks, outer, e.Event, "[]"), f.childIndent(hooks, outer), "", e.value)
	}
	return nil
}

// addSeat puts the host's mod before the others in its list. What stands around the values stays where it is.
func (f *File) addSeat(root *hujson.Object) {
	list := f.ensure(root, "", f.host.Install.ModSeats, "[]").(*hujson.Array) //nolint:forcetypeassert // Parse has looked
	f.add(list, f.childIndent(root, ""), "", agent.Marshal(f.host.Install.ModSeat))
	for i := len(list.Elements) - 1; i > 0; i-- {
		list.Elements[i].Value, list.Elements[i-1].Value = list.Elements[i-1].Value, list.Elements[i].Value
	}
}

func (f *File) addServer(s *agent.Server) error {
	if s == nil || f.key == "" {
		return nil
	}
	if text, _ := f.server(); text != nil {
		return fmt.Errorf("line %d: the MCP server %s is another program's; rename it there", f.line(find(f.member(f.key), serverName)), serverName)
	}
	root := f.object()
	f.add(f.ensure(root, "", f.key, "{}"), f.childIndent(root, ""), serverName, agent.Marshal(s))
	return nil
}

// ensure returns the member of an object with a name, which is added if it is not there.
func (f *File) ensure(in *hujson.Object, indent, name, empty string) hujson.ValueTrimmed {
	if find(in, name) == nil {
		f.add(in, indent, name, []byte(empty))
	}
	return find(in, name).Value
}

// child is a member of an object or an element of a list: its first value, which is a member's name, and its own.
type child struct{ first, value *hujson.Value }

// childrenOf are the children of an object or list, and what stands before the closing bracket.
func childrenOf(v hujson.ValueTrimmed) (all []child, closing *hujson.Extra) {
	switch v := v.(type) {
	case *hujson.Object:
		for i := range v.Members {
			all = append(all, child{&v.Members[i].Name, &v.Members[i].Value})
		}
		closing = &v.AfterExtra
	case *hujson.Array:
		for i := range v.Elements {
			all = append(all, child{&v.Elements[i], &v.Elements[i]})
		}
		closing = &v.AfterExtra
	}
	return all, closing
}

// add adds JSON of ours to an object, under a name, or to a list, which is indented by indent.
func (f *File) add(to hujson.ValueTrimmed, indent, name string, compact []byte) {
	before, inner, after := f.place(to, indent)
	text := compact
	if inner != oneLine {
		var b bytes.Buffer
		_ = json.Indent(&b, compact, inner, f.unit) // it is ours, and valid
		text = bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(f.end))
	}
	value, err := hujson.Parse(text)
	if err != nil {
		panic(err)
	}
	value.AfterExtra = after
	switch to := to.(type) {
	case *hujson.Object:
		value.BeforeExtra = hujson.Extra(" ")
		to.Members = append(to.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: value})
	case *hujson.Array:
		value.BeforeExtra = before
		to.Elements = append(to.Elements, value)
	}
}

// oneLine is an indentation of what stands in one line.
const oneLine = "\x00"

// place settles what stands before a new child of an object or list, and before the closing bracket, as the children that
// are there have it. Comments behind the last one stay behind it. It returns the child's own indentation too, and what stands
// behind it.
func (f *File) place(in hujson.ValueTrimmed, indent string) (before hujson.Extra, inner string, after hujson.Extra) {
	all, closing := childrenOf(in)
	if n := len(all); n > 0 && all[n-1].value.AfterExtra != nil { // there is a comma behind it, and will be one
		after = hujson.Extra{}
	}
	if inner = f.childIndent(in, indent); inner == oneLine {
		return hujson.Extra(strings.Repeat(" ", min(len(all), 1))), inner, after
	}
	comments := bytes.TrimRight(*closing, " \t\r\n")
	rest := (*closing)[len(comments):]
	before = hujson.Extra(string(comments) + f.end + inner)
	if !bytes.Contains(rest, []byte("\n")) {
		rest = hujson.Extra(f.end + indent)
	}
	*closing = bytes.Clone(rest)
	return before, inner, after
}

// childIndent is how the children of an object or list are indented, or [oneLine].
func (f *File) childIndent(of hujson.ValueTrimmed, indent string) string {
	all, _ := childrenOf(of)
	switch {
	case indent == oneLine:
		return oneLine
	case len(all) == 0:
		return indent + f.unit
	case !bytes.Contains(all[len(all)-1].first.BeforeExtra, []byte("\n")):
		return oneLine
	default:
		return indentOf(all[len(all)-1].first.BeforeExtra)
	}
}

// indentOf is what stands between the last line break and a value, if that is blank.
func indentOf(before hujson.Extra) string {
	indent := string(before[bytes.LastIndexByte(before, '\n')+1:])
	if strings.Trim(indent, " \t") != "" {
		return ""
	}
	return indent
}

// Remove implements [Document]. Groups, lists and objects that are empty without what is ours go with it.
func (f *File) Remove() bool {
	removed := false
	if hooks := f.hooks(); hooks != nil {
		for i, m := range slices.Backward(hooks.Members) {
			list, ok := m.Value.Value.(*hujson.Array)
			if !ok || !f.removeFrom(list) {
				continue
			}
			if removed = true; len(list.Elements) == 0 {
				remove(hooks, i)
			}
		}
		if removed && len(hooks.Members) == 0 {
			removeNamed(f.object(), "hooks")
		}
	}
	if list, at := f.seat(); at >= 0 {
		if remove(list, at); len(list.Elements) == 0 {
			removeNamed(f.object(), f.host.Install.ModSeats)
		}
		removed = true
	}
	if _, ours := f.server(); !ours {
		return removed
	}
	servers := f.member(f.key)
	if removeNamed(servers, serverName); len(servers.Members) == 0 {
		removeNamed(f.object(), f.key)
	}
	return true
}

// removeNamed removes the member of a name.
func removeNamed(o *hujson.Object, name string) {
	if i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name }); i >= 0 {
		remove(o, i)
	}
}

// removeFrom removes hooks of ours from an event's list.
func (f *File) removeFrom(list *hujson.Array) (removed bool) {
	for i := len(list.Elements) - 1; i >= 0; i-- {
		inner, at := list, i
		if f.host.Install.Nested {
			inner, at = f.inner(&list.Elements[i]), -1
		}
		gone := false
		for j, v := range slices.Backward(f.handlers(&list.Elements[i])) {
			if marked(v) {
				remove(inner, max(at, j))
				gone = true
			}
		}
		if removed = removed || gone; gone && inner != list && len(inner.Elements) == 0 {
			remove(list, i)
		}
	}
	return removed
}

// remove removes a child. It keeps the comments before it, and the comma behind the last child.
func remove(from hujson.ValueTrimmed, i int) {
	all, _ := childrenOf(from)
	before, after := all[i].first.BeforeExtra, all[i].value.AfterExtra
	switch from := from.(type) {
	case *hujson.Object:
		from.Members = slices.Delete(from.Members, i, i+1)
	case *hujson.Array:
		from.Elements = slices.Delete(from.Elements, i, i+1)
	}
	all, closing := childrenOf(from)
	next := closing
	if i < len(all) {
		next = &all[i].first.BeforeExtra
	} else if i > 0 && after != nil && all[i-1].value.AfterExtra == nil {
		all[i-1].value.AfterExtra = hujson.Extra{}
	}
	if comments := bytes.TrimRight(before, " \t\r\n"); len(comments) > 0 {
		*next = append(bytes.Clone(comments), *next...)
	}
	if len(all) == 0 && len(bytes.TrimSpace(*closing)) == 0 {
		*closing = nil
	}
}

func marked(v *hujson.Value) bool {
	var h agent.Handler
	return json.Unmarshal(standard(v), &h) == nil && isOurs(&h)
}
