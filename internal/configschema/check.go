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
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
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
var schemaStep = lazyregexp.New(`^validating (.+?): `)

// Locate makes a validation error a *phases.ConfigError with the place of the value. The schema's path has names of
// members; the item of a list, or a member with any name, is found by validating each one by itself.
func Locate(schema *jsonschema.Resolved, value any, err error) error {
	root, message, pointer, where := schema.Schema(), err.Error(), "", ""
	at := member{value: value}
	for step := schemaStep().FindStringSubmatch(message); step != nil; step = schemaStep().FindStringSubmatch(message) {
		message, where = message[len(step[0]):], strings.TrimPrefix(step[1], "/$defs/"+wholeSchema)
		members := reached(root, where, at.value)
		if len(members) > 1 {
			found, why := failing(root, where, members)
			if why == "" { // such as one below a $dynamicRef
				return &phases.ConfigError{Pointer: pointer, Message: message}
			}
			members, message = []member{found}, why
		}
		if len(members) > 0 {
			at = members[0]
			pointer += "/" + escapePointer(at.key)
		}
	}
	message, key := plain(message, at.value, part(root, where))
	if key != "" {
		pointer += "/" + escapePointer(key)
	}
	return &phases.ConfigError{Pointer: pointer, Message: message, AtKey: key != "" || at.isKey}
}

//nolint:gochecknoglobals // immutable
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscapes.Replace(name) }

func unescapePointer(name string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}

// member is a part of a value: that of a key or an index, or a key itself.
type member struct {
	key   string
	value any
	isKey bool
}

// schemaKeyword is a keyword of a path in the schema, with the name or index behind those that hold many schemas.
var schemaKeyword = lazyregexp.New(`/(?:(properties|patternProperties|\$defs|definitions|depend\w+|\w+Of|prefixItems)/([^/]*)|(items)(?:/(\d+))?|([^/]+))`)

// reached returns the members of a value that the last keyword of a path in the schema is about; none if it is about
// the value as a whole.
func reached(root *jsonschema.Schema, where string, at any) (found []member) {
	steps := schemaKeyword().FindAllStringSubmatch(where, -1)
	if len(steps) == 0 {
		return nil
	}
	last := steps[len(steps)-1]
	keyword, name, schema := last[1]+last[3]+last[5], unescapePointer(last[2]+last[4]), part(root, strings.TrimSuffix(where, last[0]))
	list, _ := at.([]any)
	for i, item := range list {
		rest := i >= len(schema.PrefixItems)+len(schema.ItemsArray)
		if index := strconv.Itoa(i); name == index || name == "" && rest && strings.HasSuffix(strings.ToLower(keyword), "items") {
			found = append(found, member{index, item, false})
		}
	}
	fields, _ := at.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		matches := func(pattern string) bool { ok, err := regexp.MatchString(pattern, key); return ok && err == nil }
		switch {
		case keyword == "propertyNames":
			found = append(found, member{key, key, true})
		case keyword == "properties" && key == name, keyword == "patternProperties" && matches(name),
			(keyword == "additionalProperties" || keyword == "unevaluatedProperties") && schema.Properties[key] == nil &&
				!slices.ContainsFunc(slices.Collect(maps.Keys(schema.PatternProperties)), matches):
			found = append(found, member{key, fields[key], false})
		}
	}
	return found
}

// failing finds the first member that the schema at a path refuses, and says why; "" if there is none.
func failing(root *jsonschema.Schema, where string, members []member) (found member, why string) {
	whole := root.CloneSchemas()
	whole.ID = cmp.Or(whole.ID, "urn:"+wholeSchema)
	ref := whole.ID + (&url.URL{Fragment: where}).String()
	alone, err := (&jsonschema.Schema{Schema: root.Schema, Ref: ref, Defs: map[string]*jsonschema.Schema{wholeSchema: whole}}).Resolve(nil)
	for i := 0; err == nil && i < len(members); i++ {
		if one := alone.Validate(members[i].value); one != nil {
			below := schemaStep().ReplaceAllString(one.Error(), "")
			return members[i], schemaStep().ReplaceAllString(below, "")
		}
	}
	return member{}, ""
}

// wholeSchema is the name of the whole schema within the one that failing makes.
const wholeSchema = "grapnel.whole"
