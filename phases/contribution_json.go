package phases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// newContribution returns a zero value of the kind, or nil for no kind.
func newContribution(k Kind) Contribution {
	switch k {
	case KindPolicy:
		return &Policy{}
	case KindPromptContext:
		return &PromptContext{}
	case KindPromptSection:
		return &PromptSection{}
	case KindToolBundle:
		return &ToolBundle{}
	case KindDecision:
		return &Decision{}
	case KindRewrite:
		return &Rewrite{}
	case KindReminder:
		return &Reminder{}
	case KindManifestDiagnostic:
		return &ManifestDiagnostic{}
	case KindAudit:
		return &Audit{}
	case KindBackgroundJob:
		return &BackgroundJob{}
	case KindNoop:
		return &Noop{}
	}
	return nil
}

// Contributions is a list that encodes to and from JSON with a "kind" member
// in each entry.
type Contributions []Contribution

// MarshalJSON implements json.Marshaler: the kind first, then the fields. An
// entry that is nil is an error.
func (cs Contributions) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // whoever wants that does it to the whole
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
		out = append(out, fmt.Sprintf(`{"kind":%q`, c.Kind())...)
		if len(body) > len("{}") {
			out = append(out, ',')
		}
		out = append(out, body[1:]...)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Unknown kinds and fields are
// errors that name the entry.
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
		return nil, fmt.Errorf("unknown kind %q%s", kind, DidYouMean(string(kind), words(Kinds())))
	}
	delete(fields, "kind")
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if err := strict(body, c); err != nil {
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
