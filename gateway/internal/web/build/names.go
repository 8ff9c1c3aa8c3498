package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// printer writes types. Objects that are in more than one place have a name.
type printer struct {
	seen  map[string]*shape // by their schemas without descriptions
	order []*shape          // as they were found
	named []*shape          // sorted by name
}

// shape is a kind of object.
type shape struct {
	of     *jsonschema.Schema
	places int
	// path is where it was found first: the method's words, then the members' names.
	path []string
	name string
}

const leastNamed = 2 // members; objects with less are written out

// count notes the objects in a schema. Those in one that is known are not counted again: they are written once with it.
func (p *printer) count(s *jsonschema.Schema, path []string) {
	if s == nil {
		return
	}
	if len(s.Properties) >= leastNamed {
		key := shapeOf(s)
		if known := p.seen[key]; known != nil {
			known.places++
			return
		}
		p.seen[key] = &shape{of: s, places: 1, path: path}
		p.order = append(p.order, p.seen[key])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p.count(s.Properties[name], append(slices.Clone(path), words(name)...))
	}
	for _, inner := range slices.Concat(s.AnyOf, s.OneOf, []*jsonschema.Schema{s.AdditionalProperties}) {
		p.count(inner, path)
	}
	last := len(path) - 1
	p.count(s.Items, append(slices.Clone(path[:last]), one(path[last])))
}

// names gives each object that is in more than one place the shortest end of its path that nothing else has.
func (p *printer) names() {
	taken := map[string]bool{"Json": true, "Methods": true, "Notifications": true, "Record": true, "Error": true}
	for _, s := range p.order {
		if s.places < 2 {
			continue
		}
		for n := 1; n <= len(s.path); n++ {
			end := s.path[len(s.path)-n:]
			s.name = strings.Join(end, "")
			if !taken[s.name] && end[0] != "Params" && end[0] != "Result" {
				break
			}
		}
		taken[s.name] = true
		p.named = append(p.named, s)
	}
	slices.SortFunc(p.named, func(a, b *shape) int { return strings.Compare(a.name, b.name) })
}

// words are the parts of a method's or member's name, as they stand in the name of a type.
func words(name string, more ...string) []string {
	list := append(strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '/' || r == '.' || r == '-' }), more...)
	for i, w := range list {
		list[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return list
}

// one is the word for an element of a list.
func one(word string) string {
	if stem, ok := strings.CutSuffix(word, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(word, "s")
}

// shapeOf is the same text for objects of the same type.
func shapeOf(s *jsonschema.Schema) string {
	bare := *s
	bare.Description, bare.Type, bare.Types = "", "", nil // "object or null" is another type of the same objects
	text, _ := json.Marshal(&bare)                        //nolint:errchkjson // it was read from JSON
	return string(text)
}
