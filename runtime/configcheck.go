package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/phases"
)

// checkConfig checks a plugin's configuration against its own schema. Without a
// schema only an absent or empty one is accepted. A mistake is a
// *phases.ConfigError with its place.
func checkConfig(schema, cfg json.RawMessage) error {
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
	if err := checkSchemaSize(schema); err != nil {
		return invalidDescription(fmt.Errorf("config_schema: %w", err))
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return invalidDescription(fmt.Errorf("config_schema: %w", err))
	}
	if err := checkSchemaWork(&s); err != nil {
		return invalidDescription(fmt.Errorf("config_schema: %w", err))
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return invalidDescription(fmt.Errorf("config_schema: %w", err))
	}
	if err := resolved.Validate(value); err != nil {
		return placed(resolved, value, err)
	}
	return nil
}

// schemaStep is one step of the path that the validator's errors are made of:
// "validating /properties/hooks: validating /properties/hooks/items: …". The
// path is the schema's, not the value's.
var schemaStep = regexp.MustCompile(`^validating (\S+): `)

// misnamed is the end of an error about members that the schema does not have.
var misnamed = regexp.MustCompile(`^unexpected additional properties \["([^"]+)"`)

// placed finds the value that a validation error is about: names of members
// stand in the schema's path; which item of a list it was is found by
// validating the list with that item alone.
func placed(schema *jsonschema.Resolved, value any, err error) error {
	message, pointer, at := err.Error(), "", value
	for {
		step := schemaStep.FindStringSubmatch(message)
		if step == nil {
			break
		}
		message = message[len(step[0]):]
		if strings.HasSuffix(step[1], "/items") {
			i := failingItem(schema, value, pointer, at)
			if list, ok := at.([]any); ok && i < len(list) {
				pointer, at = pointer+"/"+strconv.Itoa(i), list[i]
			}
		} else if parent, name, ok := cutLast(step[1]); ok && strings.HasSuffix(parent, "/properties") {
			fields, isObject := at.(map[string]any)
			if child, there := fields[name]; isObject && there {
				pointer, at = pointer+"/"+escapePointer(name), child
			}
		}
	}
	if name := misnamed.FindStringSubmatch(message); name != nil {
		return &phases.ConfigError{Pointer: pointer + "/" + escapePointer(name[1]), Message: fmt.Sprintf("unknown key %q", name[1])}
	}
	return &phases.ConfigError{Pointer: pointer, Message: message}
}

func cutLast(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// failingItem returns the index of the first item of the list at pointer that
// fails by itself.
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
		// The other items are left away: one that fails too must not decide.
		return []any{replaced(v[i], path[1:], other)}
	}
	return value
}
