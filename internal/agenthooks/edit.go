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
	root := f.object()
	if len(entries) == 0 {
		return nil
	}
	if f.host.versioned && find(root, "version") == nil {
		f.add(root, "", "version", hujson.Value{Value: hujson.Int(1)})
	}
	if find(root, "hooks") == nil {
		f.add(root, "", "hooks", hujson.Value{Value: &hujson.Object{}})
	}
	hooks := f.hooks()
	outer := f.childIndent(root, "")
	for _, e := range entries {
		value, err := hujson.Parse(bytes.Clone(e.value))
		if err != nil {
			return err
		}
		if find(hooks, e.Event) == nil {
			f.add(hooks, outer, e.Event, hujson.Value{Value: &hujson.Array{}})
		}
		f.add(find(hooks, e.Event).Value, f.childIndent(hooks, outer), "", value)
	}
	return nil
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

// add adds a value to an object, under a name, or to a list, which is indented by indent.
func (f *File) add(to hujson.ValueTrimmed, indent, name string, value hujson.Value) {
	before, inner := f.place(to, &value, indent)
	f.layOut(&value, inner)
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
// are there have it. Comments behind the last one stay behind it. It returns the child's own indentation too.
func (f *File) place(in hujson.ValueTrimmed, added *hujson.Value, indent string) (before hujson.Extra, inner string) {
	all, closing := childrenOf(in)
	if n := len(all); n > 0 && all[n-1].value.AfterExtra != nil { // there is a comma behind it, and will be one
		added.AfterExtra = hujson.Extra{}
	}
	if inner = f.childIndent(in, indent); inner == oneLine {
		if len(all) > 0 {
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

// layOut formats a value of ours. Lists of texts stand in one line.
func (f *File) layOut(v *hujson.Value, indent string) {
	all, closing := childrenOf(v.Value)
	if len(all) == 0 {
		return
	}
	_, isList := v.Value.(*hujson.Array)
	inner, end := indent+f.unit, hujson.Extra(f.end+indent)
	before := func(int) hujson.Extra { return hujson.Extra(f.end + inner) }
	if indent == oneLine || isList && all[0].value.Value.Kind() == '"' {
		inner, end = oneLine, nil
		before = func(i int) hujson.Extra { return hujson.Extra(strings.Repeat(" ", min(i, 1))) }
	}
	for i, c := range all {
		f.layOut(c.value, inner)
		c.value.BeforeExtra = hujson.Extra(" ")
		c.first.BeforeExtra = before(i)
	}
	*closing = end
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
			remove(hooks, i)
		}
	}
	if removed && len(hooks.Members) == 0 {
		removeNamed(f.object(), "hooks")
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
				remove(list, i)
				removed = true
			}
			continue
		}
		inner, gone := f.inner(e), false
		for j := len(f.handlers(e)) - 1; j >= 0; j-- {
			if marked(&inner.Elements[j]) {
				remove(inner, j)
				gone = true
			}
		}
		if removed = removed || gone; gone && len(inner.Elements) == 0 {
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
	var h Handler
	return json.Unmarshal(standard(v), &h) == nil && h.ours()
}
