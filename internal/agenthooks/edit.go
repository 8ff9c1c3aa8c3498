package agenthooks

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Add implements [Document]: what is new stands behind what is there.
func (f *File) Add(w *Wanted) error {
	if f.isHooks {
		if err := f.addEntries(w.Entries); err != nil {
			return err
		}
	}
	return f.addServer(w.Server)
}

func (f *File) addEntries(entries []Entry) error {
	root := f.root.Value.(*hujson.Object) //nolint:forcetypeassert // Parse has looked
	if len(entries) == 0 {
		return nil
	}
	if f.host.versioned && find(root, "version") == nil {
		f.addMember(root, "", "version", hujson.Value{Value: hujson.Int(1)})
	}
	if find(root, "hooks") == nil {
		f.addMember(root, "", "hooks", hujson.Value{Value: &hujson.Object{}})
	}
	hooks := f.hooks()
	outer := f.childIndent(names(root), "")
	for _, e := range entries {
		value, err := hujson.Parse(bytes.Clone(e.value))
		if err != nil {
			return err
		}
		if find(hooks, e.Event) == nil {
			f.addMember(hooks, outer, e.Event, hujson.Value{Value: &hujson.Array{}})
		}
		list := find(hooks, e.Event).Value.(*hujson.Array) //nolint:forcetypeassert // Parse has looked
		f.addElement(list, f.childIndent(names(hooks), outer), value)
	}
	return nil
}

// addMember adds a member to an object that is indented by indent.
func (f *File) addMember(o *hujson.Object, indent, name string, value hujson.Value) {
	var last *hujson.Value
	if n := len(o.Members); n > 0 {
		last = &o.Members[n-1].Value
	}
	before, inner := f.place(names(o), last, &o.AfterExtra, &value, indent)
	f.layOut(&value, inner)
	value.BeforeExtra = hujson.Extra(" ")
	o.Members = append(o.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: value})
}

// addElement adds an element to a list that is indented by indent.
func (f *File) addElement(a *hujson.Array, indent string, value hujson.Value) {
	var all []*hujson.Value
	for i := range a.Elements {
		all = append(all, &a.Elements[i])
	}
	var last *hujson.Value
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	before, inner := f.place(all, last, &a.AfterExtra, &value, indent)
	f.layOut(&value, inner)
	value.BeforeExtra = before
	a.Elements = append(a.Elements, value)
}

// oneLine is an indentation of what stands in one line.
const oneLine = "\x00"

// place settles what stands before a new child of an object or list, and before the closing bracket, as the children that
// are there have it. Comments behind the last one stay behind it. It returns the child's own indentation too.
func (f *File) place(children []*hujson.Value, last *hujson.Value, closing *hujson.Extra, child *hujson.Value, indent string) (before hujson.Extra, inner string) {
	if last != nil && last.AfterExtra != nil { // there is a comma behind it, and will be one
		child.AfterExtra = hujson.Extra{}
	}
	if inner = f.childIndent(children, indent); inner == oneLine {
		if len(children) > 0 {
			before = hujson.Extra(" ")
		}
		return before, inner
	}
	comments := bytes.TrimRight(*closing, " \t\r\n")
	rest := (*closing)[len(comments):]
	before = hujson.Extra(string(comments) + f.end + inner)
	if !bytes.Contains(rest, []byte("\n")) {
		rest = hujson.Extra(f.end + indent)
	}
	*closing = bytes.Clone(rest)
	return before, inner
}

// childIndent is how the children of an object or list are indented, or [oneLine].
func (f *File) childIndent(children []*hujson.Value, indent string) string {
	switch {
	case indent == oneLine:
		return oneLine
	case len(children) == 0:
		return indent + f.unit
	case !bytes.Contains(children[len(children)-1].BeforeExtra, []byte("\n")):
		return oneLine
	default:
		return indentOf(children[len(children)-1].BeforeExtra)
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

func names(o *hujson.Object) []*hujson.Value {
	all := make([]*hujson.Value, len(o.Members))
	for i := range o.Members {
		all[i] = &o.Members[i].Name
	}
	return all
}

// layOut formats a value of ours. Lists of texts stand in one line.
func (f *File) layOut(v *hujson.Value, indent string) {
	inner, end := indent+f.unit, hujson.Extra(f.end+indent)
	before := func(int) hujson.Extra { return hujson.Extra(f.end + inner) }
	inline := func(i int) hujson.Extra { return hujson.Extra(strings.Repeat(" ", min(i, 1))) }
	if indent == oneLine {
		inner, end, before = oneLine, nil, inline
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			c.Members[i].Name.BeforeExtra = before(i)
			f.layOut(&c.Members[i].Value, inner)
			c.Members[i].Value.BeforeExtra = hujson.Extra(" ")
		}
		if len(c.Members) > 0 {
			c.AfterExtra = end
		}
	case *hujson.Array:
		if len(c.Elements) > 0 && c.Elements[0].Value.Kind() == '"' {
			inner, end, before = oneLine, nil, inline
		}
		for i := range c.Elements {
			f.layOut(&c.Elements[i], inner)
			c.Elements[i].BeforeExtra = before(i)
		}
		if len(c.Elements) > 0 {
			c.AfterExtra = end
		}
	}
}

// Remove implements [Document]. Groups, lists and objects that are empty without what is ours go with it.
func (f *File) Remove() bool {
	hooks, server := f.removeHooks(), f.removeServer()
	return hooks || server
}

func (f *File) removeHooks() bool {
	hooks := f.hooks()
	if hooks == nil {
		return false
	}
	removed := false
	for i, m := range slices.Backward(hooks.Members) {
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok || !f.removeFrom(list) {
			continue
		}
		if removed = true; len(list.Elements) == 0 {
			removeMember(hooks, i)
		}
	}
	if removed && len(hooks.Members) == 0 {
		removeNamed(f.root.Value.(*hujson.Object), "hooks") //nolint:forcetypeassert // Parse has looked
	}
	return removed
}

// removeFrom removes hooks of ours from an event's list.
func (f *File) removeFrom(list *hujson.Array) bool {
	removed := false
	for i := len(list.Elements) - 1; i >= 0; i-- {
		e := &list.Elements[i]
		if !f.host.nested {
			if marked(e) {
				removeElement(list, i)
				removed = true
			}
			continue
		}
		inner, gone := f.inner(e), false
		for j := len(f.handlers(e)) - 1; j >= 0; j-- {
			if marked(&inner.Elements[j]) {
				removeElement(inner, j)
				gone = true
			}
		}
		if removed = removed || gone; gone && len(inner.Elements) == 0 {
			removeElement(list, i)
		}
	}
	return removed
}

func removeMember(o *hujson.Object, i int) {
	gone := o.Members[i]
	o.Members = append(o.Members[:i:i], o.Members[i+1:]...)
	keepAround(gone.Name.BeforeExtra, gone.Value.AfterExtra, i, names(o), func(j int) *hujson.Value { return &o.Members[j].Value }, &o.AfterExtra)
}

func removeElement(a *hujson.Array, i int) {
	gone := a.Elements[i]
	a.Elements = append(a.Elements[:i:i], a.Elements[i+1:]...)
	all := make([]*hujson.Value, len(a.Elements))
	for j := range a.Elements {
		all[j] = &a.Elements[j]
	}
	keepAround(gone.BeforeExtra, gone.AfterExtra, i, all, func(j int) *hujson.Value { return all[j] }, &a.AfterExtra)
}

// keepAround keeps the comments before a child that was removed at i, and the comma behind the last child.
func keepAround(before, after hujson.Extra, i int, first []*hujson.Value, value func(int) *hujson.Value, closing *hujson.Extra) {
	next := closing
	if i < len(first) {
		next = &first[i].BeforeExtra
	} else if i > 0 && after != nil && value(i-1).AfterExtra == nil {
		value(i - 1).AfterExtra = hujson.Extra{}
	}
	if comments := bytes.TrimRight(before, " \t\r\n"); len(comments) > 0 {
		*next = append(bytes.Clone(comments), *next...)
	}
	if len(first) == 0 && len(bytes.TrimSpace(*closing)) == 0 {
		*closing = nil
	}
}

func marked(v *hujson.Value) bool {
	var h Handler
	return json.Unmarshal(standard(v), &h) == nil && h.ours()
}
