package phases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// DecodeInput decodes the JSON input of a phase strictly: unknown fields, a
// second value and bad embedded JSON are errors. Empty data is a zero input.
func DecodeInput(t *Table, p Phase, data []byte) (Input, error) {
	row, ok := t.Lookup(p)
	if !ok {
		return nil, fmt.Errorf("unknown phase %q%s", p, suggest.DidYouMean(string(p), t.Names()))
	}
	in := row.NewInput()
	if len(bytes.TrimSpace(data)) == 0 {
		return in, nil
	}
	if err := jsonscan.Check(data, MaxJSONDepth); err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	if err := jsonscan.Decode(data, in); err != nil {
		return nil, fmt.Errorf("input of %s: %w", p, err)
	}
	return in, nil
}

// DecodeContext decodes a context strictly. Empty data is a zero context.
func DecodeContext(data []byte) (Context, error) {
	var c Context
	if len(bytes.TrimSpace(data)) == 0 {
		return c, nil
	}
	if err := jsonscan.Check(data, MaxJSONDepth); err != nil {
		return c, fmt.Errorf("context %w", err)
	}
	if err := jsonscan.Decode(data, &c); err != nil {
		return Context{}, fmt.Errorf("context: %w", err)
	}
	return c, nil
}

// ValidateInput checks what types cannot express: text is UTF-8 without NUL, embedded JSON is valid and not too deep.
func ValidateInput(in Input) error {
	v := &contributionCheck{}
	if custom, ok := in.(*CustomInput); ok {
		// JSON that is not an object would have no members to check.
		if err := checkObject(custom.Fields); err != nil {
			return fmt.Errorf("input %w", err)
		}
		for name, value := range members(in) {
			v.json(name, value, false)
		}
		return v.err
	}
	eachField(in, v.checkValue)
	return v.err
}

// checkObject accepts nothing or a JSON object.
func checkObject(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := jsonscan.Check(raw, MaxJSONDepth); err != nil {
		return err
	}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); trimmed[0] != '{' {
		return errors.New("is not a JSON object")
	}
	return nil
}

// Contributions is a list that encodes to and from JSON with a "kind" member in each entry.
type Contributions []Contribution

// MarshalJSON implements json.Marshaler: the kind first, then the fields. A nil entry is an error.
func (cs Contributions) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // the caller may do so
	for i, c := range cs {
		if i > 0 {
			out = append(out, ',')
		}
		buf.Reset()
		if err := enc.Encode(c); err != nil {
			return nil, fmt.Errorf("contribution %d: %w", i, err)
		}
		body := bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})
		if body[0] != '{' {
			return nil, fmt.Errorf("contribution %d is empty", i)
		}
		out = append(out, fmt.Sprintf(`{"kind":%q`, KindOf(c))...)
		if len(body) > len("{}") {
			out = append(out, ',')
		}
		out = append(out, body[1:]...)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Unknown kinds and fields are errors that name the entry.
func (cs *Contributions) UnmarshalJSON(data []byte) error {
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return fmt.Errorf("contributions: want a list of objects: %w", err)
	}
	out := make(Contributions, len(entries))
	for i, fields := range entries {
		c, err := decodeContribution(fields)
		if err != nil {
			return fmt.Errorf("contribution %d: %w", i, err)
		}
		out[i] = c
	}
	*cs = out
	return nil
}

func decodeContribution(fields map[string]json.RawMessage) (Contribution, error) {
	var kind Kind
	if raw, ok := fields["kind"]; !ok {
		return nil, fmt.Errorf("no kind; it is one of %s", strings.Join(words(Kinds()), ", "))
	} else if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, fmt.Errorf("kind: %w", err)
	}
	c := newContribution(kind)
	if c == nil {
		return nil, fmt.Errorf("unknown kind %q%s", kind, suggest.DidYouMean(string(kind), words(Kinds())))
	}
	delete(fields, "kind")
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if err := jsonscan.Decode(body, c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return c, nil
}

// words turns typed words into strings.
func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
