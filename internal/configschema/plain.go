package configschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// Messages of the validator. A text of the configuration stands in them as a whole and as it is: a host hides what came from
// the environment by its text.
var (
	misnamed = lazyregexp.New(`^unexpected additional properties \["([^"]+)"`)
	unlisted = lazyregexp.New(`^enum: .* does not equal any of: \[(.*)\]$`)
	mistyped = lazyregexp.New(`(?s)^type: .* has type "\w+", want (?:one of )?"(.*)"$`)
	outside  = lazyregexp.New(`^\w+: (\S+?)(?:/1)? is (less|greater) than (or equal to )?(\S+?)(?:\.0+)?$`)
	absent   = lazyregexp.New(`^required: missing properties: \["([^"]+)"`)
	few      = lazyregexp.New(`^minItems: array length (\d+) is less than (\d+)$`)
)

// plain rewrites a validator message for people; key is the member that it is about.
func plain(message string, at any, schema *jsonschema.Schema) (words, key string) {
	text, isText := at.(string)
	if m := misnamed().FindStringSubmatch(message); m != nil {
		known := slices.Sorted(maps.Keys(schema.Properties))
		hint := suggest.DidYouMean(m[1], known)
		if hint == "" && len(known) > 0 {
			hint = "; the keys are " + strings.Join(known, ", ")
		}
		return fmt.Sprintf("unknown key %q%s", m[1], hint), m[1]
	}
	if m := unlisted().FindStringSubmatch(message); m != nil {
		known := strings.Fields(m[1])
		if !isText {
			return "want one of " + strings.Join(known, ", ") + ", got " + typeOf(at), ""
		}
		return `unknown word "` + text + `", want one of ` + strings.Join(known, ", ") + suggest.DidYouMean(text, known), ""
	}
	if m := mistyped().FindStringSubmatch(message); m != nil {
		var wanted []string
		for t := range strings.SplitSeq(m[1], ", ") {
			if t != "null" {
				wanted = append(wanted, jsonscan.KindName(t))
			}
		}
		return "want " + strings.Join(wanted, " or ") + ", got " + typeOf(at), ""
	}
	if m := outside().FindStringSubmatch(message); m != nil {
		bound := map[string]string{
			"less than ": "at least ", "greater than ": "at most ",
			"less than or equal to ": "more than ", "greater than or equal to ": "less than ",
		}[m[2]+" than "+m[3]]
		return "want " + bound + m[4] + ", got " + m[1], ""
	}
	if m := absent().FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("the key %q is missing", m[1]), ""
	}
	if m := few().FindStringSubmatch(message); m != nil {
		return "want a list of at least " + m[2] + ", got " + m[1], ""
	}
	if isText && strings.HasPrefix(message, "pattern: ") && schema.Pattern != "" {
		return `"` + text + `" is not of the form ` + schema.Pattern + strings.TrimSuffix(" ("+schema.Description+")", " ()"), ""
	}
	return message, ""
}

// typeOf is a value for a message: of a list or mapping only what it is.
func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return `the text "` + v + `"`
	case float64:
		return "the number " + strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return jsonscan.KindName("array")
	case map[string]any:
		return jsonscan.KindName("object")
	}
	return jsonscan.KindName("null")
}

// part is the schema at a path of the validator's messages; an empty one if there is none.
func part(root *jsonschema.Schema, where string) *jsonschema.Schema {
	found := &jsonschema.Schema{}
	var at any
	data, err := json.Marshal(root)
	if err != nil || json.Unmarshal(data, &at) != nil {
		return found
	}
	for _, name := range strings.Split(where, "/")[1:] {
		switch v := at.(type) {
		case map[string]any:
			at = v[unescapePointer(name)]
		case []any:
			if i, err := strconv.ParseUint(name, 10, 0); err == nil && i < uint64(len(v)) {
				at = v[i]
			}
		}
	}
	if data, err = json.Marshal(at); err == nil {
		_ = json.Unmarshal(data, found) // it was one before
	}
	return found
}
