package phases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// checkObject accepts nothing, or a JSON object.
func checkObject(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := CheckJSON(raw, MaxJSONDepth); err != nil {
		return err
	}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); trimmed[0] != '{' {
		return errors.New("is not a JSON object")
	}
	return nil
}

// CheckJSON checks that raw is one valid JSON value in UTF-8, without NUL, nested
// at most depth deep. The nesting is checked first, without recursion.
func CheckJSON(raw []byte, depth int) error {
	if d := jsonDepth(raw); d > depth {
		return fmt.Errorf("is JSON nested deeper than %d", depth)
	}
	if !json.Valid(raw) {
		return errors.New("is not valid JSON")
	}
	if !utf8.Valid(raw) {
		return errors.New("is not valid UTF-8")
	}
	if bytes.Contains(raw, []byte(`\u0000`)) && holdsEscapedNUL(raw) {
		return errors.New("holds a NUL")
	}
	return nil
}

// holdsEscapedNUL tells \u0000 from \\u0000.
func holdsEscapedNUL(raw []byte) bool {
	for i := 0; i < len(raw)-5; i++ {
		if raw[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
			return true
		}
		i++ // skip the escaped byte
	}
	return false
}

// jsonDepth counts the deepest nesting of brackets outside strings.
func jsonDepth(raw []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// strict decodes one JSON value and refuses unknown fields and trailing data.
func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// cloneRaw copies embedded JSON; nil stays nil.
func cloneRaw(r json.RawMessage) json.RawMessage { return bytes.Clone(r) }
