package phases

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Text is a text that a plugin sees only if it was granted. In JSON it is a
// string, or {"withheld": true, "chars": N} where the grant is missing.
type Text struct {
	// Value is the text; empty when Withheld.
	Value string
	// Withheld says that there was a text which the plugin may not see.
	Withheld bool
	// Chars is the length of a withheld text in Unicode scalar values.
	Chars int
}

// T makes a Text of a string.
func T(s string) Text { return Text{Value: s} }

func (t Text) withhold() Text {
	if t.Withheld {
		return t
	}
	return Text{Withheld: true, Chars: utf8.RuneCountInString(t.Value)}
}

// withheldJSON is the JSON shape of a text that was not granted.
type withheldJSON struct {
	Withheld bool `json:"withheld"`
	Chars    int  `json:"chars"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Withheld {
		return json.Marshal(withheldJSON{true, t.Chars})
	}
	return json.Marshal(t.Value)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		*t = Text{}
		return json.Unmarshal(data, &t.Value)
	}
	var w withheldJSON
	if err := jsonscan.Decode(data, &w); err != nil {
		return err
	}
	*t = Text{Withheld: w.Withheld, Chars: w.Chars}
	return nil
}

// IsZero makes omitzero omit an empty text.
func (t Text) IsZero() bool { return t == Text{} }

// Preview is a bounded piece of a longer text.
type Preview struct {
	Text string `json:"text"`
	// OriginalLength is the length of the whole in Unicode scalar values.
	OriginalLength int  `json:"original_length"`
	Truncated      bool `json:"truncated"`
	// Withheld says that the plugin may not see the text; JSON then is {"withheld": true, "chars": N}.
	Withheld bool `json:"-"`
}

// NewPreview keeps at most limit Unicode scalar values of s.
func NewPreview(s string, limit int) Preview {
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return Preview{Text: s, OriginalLength: n}
	}
	end := 0
	for range limit {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return Preview{Text: s[:end], OriginalLength: n, Truncated: true}
}

func (p Preview) withhold() Preview {
	return Preview{OriginalLength: p.OriginalLength, Withheld: true}
}

// IsZero makes omitzero omit an empty preview.
func (p Preview) IsZero() bool { return p == Preview{} }

// MarshalJSON implements json.Marshaler.
func (p Preview) MarshalJSON() ([]byte, error) {
	if p.Withheld {
		return json.Marshal(withheldJSON{true, p.OriginalLength})
	}
	type plain Preview
	return json.Marshal(plain(p))
}

// UnmarshalJSON implements json.Unmarshaler. A bare string is a whole text.
func (p *Preview) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*p = Preview{Text: s, OriginalLength: utf8.RuneCountInString(s)}
		return nil
	}
	type plain Preview
	var v struct {
		plain
		withheldJSON
	}
	if err := jsonscan.Decode(data, &v); err != nil {
		return err
	}
	*p = Preview(v.plain)
	if v.withheldJSON.Withheld {
		*p = Preview{OriginalLength: v.Chars, Withheld: true}
	}
	return nil
}

// Duration is a length of time in settings. Its text form carries a unit ("250ms",
// "2s"); a bare number is refused as ambiguous.
type Duration time.Duration

// D returns d as the standard type.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String formats like time.Duration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write a number with a unit, such as 250ms or 2s", text)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; its error explains bare numbers.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		return fmt.Errorf("%s is not a duration; write a string with a unit, such as \"250ms\" or \"2s\"", data)
	}
	return d.UnmarshalText([]byte(s))
}
