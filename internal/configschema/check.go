// Package configschema checks a plugin's configuration against the JSON Schema that the plugin brings. It finds the
// place of a mistake, and refuses schemas whose check would not end, or would take too much memory.
//
// Stability: internal.
package configschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// Check checks a plugin's configuration against its own schema. Without a schema only an
// absent or empty one is accepted. A mistake in the configuration is a
// *phases.ConfigError with its place; any other error is about the schema.
func Check(schema, cfg json.RawMessage) error {
	var value any = map[string]any{}
	if len(cfg) > 0 {
		if err := json.Unmarshal(cfg, &value); err != nil {
			return &phases.ConfigError{Message: err.Error()}
		}
	}
	if len(schema) == 0 {
		if fields, ok := value.(map[string]any); !ok || len(fields) > 0 {
			return &phases.ConfigError{Message: "the plugin takes no configuration"}
		}
		return nil
	}
	resolved, err := resolve(schema)
	if err != nil {
		return fmt.Errorf("config_schema: %w", err)
	}
	if err := resolved.Validate(value); err != nil {
		return Locate(resolved, value, err)
	}
	return nil
}

func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	if err := checkSchemaSize(schema); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	if err := checkSchemaWork(&s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// schemaStep is one step of the path in the schema that begins the validator's errors:
// "validating /properties/hooks: validating /properties/hooks/items: …".
var schemaStep = lazyregexp.New(`^validating (\S+): `)

var misnamed = lazyregexp.New(`^unexpected additional properties \["([^"]+)"`)

// bound is what the validator says of a number, such as "minimum: 0/1 is less than 1.000000".
var bound = lazyregexp.New(`^(?:minimum|maximum): (\S+?)(?:/1)? is (less|greater) than (\S+?)\.0+$`)

var unlisted = lazyregexp.New(`^enum: .* does not equal any of: \[(.*)\]$`)

// Locate makes a validation error a *phases.ConfigError with the place of the value. The schema's path has names of
// members; the item of a list is found by validating the list with one item at a time.
func Locate(schema *jsonschema.Resolved, value any, err error) error {
	message, pointer, at, place := err.Error(), "", value, ""
	for {
		step := schemaStep().FindStringSubmatch(message)
		if step == nil {
			break
		}
		message, place = message[len(step[0]):], step[1]
		if strings.HasSuffix(step[1], "/items") {
			i := failingItem(schema, value, pointer, at)
			if list, ok := at.([]any); ok && i < len(list) {
				pointer, at = pointer+"/"+strconv.Itoa(i), list[i]
			}
		} else if parent, name := path.Split(step[1]); strings.HasSuffix(parent, "/properties/") {
			fields, isObject := at.(map[string]any)
			if child, there := fields[name]; isObject && there {
				pointer, at = pointer+"/"+escapePointer(name), child
			}
		}
	}
	if name := misnamed().FindStringSubmatch(message); name != nil {
		hint := suggest.DidYouMean(name[1], slices.Sorted(maps.Keys(schemaAt(schema.Schema(), place).Properties)))
		return &phases.ConfigError{Pointer: pointer + "/" + escapePointer(name[1]), Message: fmt.Sprintf("unknown key %q%s", name[1], hint)}
	}
	message = bound().ReplaceAllString(message, "$1 is $2 than $3")
	if list := unlisted().FindStringSubmatch(message); list != nil {
		if word, isText := at.(string); isText {
			known := strings.Fields(list[1])
			// The word is neither cut nor escaped: a host hides what came from the environment by its text.
			message = `unknown word "` + word + `", want one of ` + strings.Join(known, ", ") + suggest.DidYouMean(word, known)
		}
	}
	return &phases.ConfigError{Pointer: pointer, Message: message}
}

// schemaAt returns the schema at a path of members, items and definitions; an empty one if the path has other steps.
func schemaAt(s *jsonschema.Schema, place string) *jsonschema.Schema {
	steps := strings.Split(strings.TrimPrefix(place, "root"), "/")
	for i := 1; i < len(steps) && s != nil; i++ {
		switch {
		case steps[i] == "items":
			s = s.Items
		case steps[i] == "properties" && i+1 < len(steps):
			i++
			s = s.Properties[steps[i]]
		case steps[i] == "$defs" && i+1 < len(steps):
			i++
			s = s.Defs[steps[i]]
		default:
			s = nil
		}
	}
	return cmp.Or(s, &jsonschema.Schema{})
}

//nolint:gochecknoglobals // immutable
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscapes.Replace(name) }

func failingItem(schema *jsonschema.Resolved, value any, pointer string, at any) int {
	list, _ := at.([]any)
	for i := range list {
		if schema.Validate(replaced(value, strings.Split(pointer, "/")[1:], list[i:i+1])) != nil {
			return i
		}
	}
	return 0
}

// replaced returns a copy of value in which the place that path leads to holds
// other; it copies only what lies on the way.
func replaced(value any, path []string, other any) any {
	if len(path) == 0 {
		return other
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		maps.Copy(out, v)
		out[name] = replaced(v[name], path[1:], other)
		return out
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i >= len(v) {
			return v
		}
		// Without the other items, which may fail too.
		return []any{replaced(v[i], path[1:], other)}
	}
	return value
}
