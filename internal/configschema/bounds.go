package configschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp/syntax"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of a plugin's schema. A validator needs kilobytes for each schema in it and a
// hundred bytes for each step of a pattern.
const (
	maxSchemaBytes  = 256 << 10
	maxSchemaValues = 1 << 14 // JSON values
	maxSchemaWork   = 1 << 12 // schemas that apply to one value
	maxPatternSteps = 1 << 16 // of all patterns together
)

func checkSchemaSize(schema []byte) error {
	if len(schema) > maxSchemaBytes {
		return fmt.Errorf("has %d bytes; at most %d", len(schema), maxSchemaBytes)
	}
	values := 1 // each other one stands behind one of these
	for _, c := range schema {
		if c == ',' || c == '[' || c == '{' {
			values++
		}
	}
	if values > maxSchemaValues {
		return fmt.Errorf("has more than %d values", maxSchemaValues)
	}
	return nil
}

// checkSchemaWork refuses a schema whose check would not end: the validator follows references without counting, so
// that a cycle for the same value overflows the stack, and alternatives that share alternatives take unbounded time.
// What is below "properties" or "items" applies to a part of the value, which ends.
//
// References are "#", "#/JSON/POINTER" and "#ANCHOR"; an inner $id and $dynamicRef are refused.
func checkSchemaWork(schema *jsonschema.Schema) error {
	data, err := json.Marshal(schema) // the names as the validator understands them
	if err != nil {
		return err
	}
	var root any
	if err := json.Unmarshal(data, &root); err != nil {
		return err
	}
	w := schemaWork{all: map[string]any{}, anchors: map[string]string{}, work: map[string]int{}}
	if err := w.note("", root); err != nil {
		return err
	}
	for place := range w.all {
		if _, err := w.of(place); err != nil {
			return err
		}
	}
	return nil
}

// schemaWork counts how many schemas apply to a value together with one of them.
type schemaWork struct {
	all     map[string]any    // the objects of the schema, by JSON pointers
	anchors map[string]string // their places
	work    map[string]int    // counts by place, or workOpen while counting
	steps   int               // of the patterns so far
}

const workOpen = -1

// note collects the schema's objects, and refuses what changes the meaning of references.
func (w *schemaWork) note(place string, at any) error {
	switch v := at.(type) {
	case []any:
		for i, item := range v {
			if err := w.note(place+"/"+strconv.Itoa(i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		w.all[place] = v
		for name, member := range v {
			if err := w.noteMember(place, name, member); err != nil {
				return err
			}
			if err := w.note(place+"/"+escapePointer(name), member); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *schemaWork) noteMember(place, name string, member any) error {
	if patterns, ok := member.(map[string]any); ok && name == "patternProperties" {
		for pattern := range patterns {
			if err := w.notePattern(place, pattern); err != nil {
				return err
			}
		}
	}
	text, ok := member.(string)
	switch {
	case !ok:
	case name == "pattern":
		return w.notePattern(place, text)
	case name == "$anchor" || name == "$dynamicAnchor":
		w.anchors[text] = place
	case name == "$dynamicRef", name == "$id" && place != "":
		return fmt.Errorf("%s/%s: a plugin's schema must do without", place, name)
	}
	return nil
}

func (w *schemaWork) notePattern(place, pattern string) error {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil //nolint:nilerr // the validator reports it
	}
	if w.steps += patternSteps(parsed); w.steps > maxPatternSteps {
		return fmt.Errorf("%s: the patterns have more than %d steps", place, maxPatternSteps)
	}
	return nil
}

// patternSteps estimates the length of a compiled pattern, in which repetitions are written out.
func patternSteps(re *syntax.Regexp) int {
	steps := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		steps += patternSteps(sub)
	}
	if re.Op == syntax.OpRepeat {
		steps *= max(re.Min, re.Max, 1)
	}
	return steps
}

// of counts the schemas that apply to the same value as the one at place.
func (w *schemaWork) of(place string) (int, error) {
	switch known := w.work[place]; {
	case known == workOpen:
		return 0, fmt.Errorf("%s/: this schema refers to itself for the same value: checking would never end", place)
	case known > 0:
		return known, nil
	}
	w.work[place] = workOpen
	beside, err := w.beside(place)
	if err != nil {
		return 0, err
	}
	total := 1
	for _, next := range beside {
		n, err := w.of(next)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxSchemaWork {
			return 0, fmt.Errorf("%s/: more than %d schemas apply to one value", place, maxSchemaWork)
		}
	}
	w.work[place] = total
	return total, nil
}

// beside returns the schemas that the one at place applies to its value.
func (w *schemaWork) beside(place string) ([]string, error) {
	schema, _ := w.all[place].(map[string]any)
	var list []string
	add := func(next string) {
		if _, ok := w.all[next]; ok { // else it is "true", "false", or no schema
			list = append(list, next)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		target, err := w.target(ref)
		if err != nil {
			return nil, fmt.Errorf("%s/$ref: %w", place, err)
		}
		add(target)
	}
	for _, name := range []string{"not", "if", "then", "else"} {
		add(place + "/" + name)
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		items, _ := schema[name].([]any)
		for i := range items {
			add(place + "/" + name + "/" + strconv.Itoa(i))
		}
	}
	for _, name := range []string{"dependentSchemas", "dependencies"} {
		members, _ := schema[name].(map[string]any)
		for member := range members {
			add(place + "/" + name + "/" + escapePointer(member))
		}
	}
	return list, nil
}

func (w *schemaWork) target(ref string) (string, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return "", err
	}
	place := u.Fragment
	if anchored, ok := w.anchors[place]; ok {
		place = anchored
	}
	_, there := w.all[place]
	if u.Fragment = ""; *u != (url.URL{}) || !there {
		return "", errors.New("a plugin's schema refers to parts of itself alone: #, #/JSON/POINTER or #ANCHOR")
	}
	return place, nil
}
