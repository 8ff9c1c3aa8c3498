package phases

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// DecodeInput decodes the JSON input of a phase strictly: unknown fields, a
// second value and bad embedded JSON are errors. Empty data is a zero input.
func DecodeInput(t *Table, p Phase, data []byte) (Input, error) {
	row, ok := t.Lookup(p)
	if !ok {
		return nil, fmt.Errorf("unknown phase %q%s", p, DidYouMean(string(p), t.Names()))
	}
	in := row.NewInput()
	if len(bytes.TrimSpace(data)) == 0 {
		return in, nil
	}
	if err := CheckJSON(data, MaxJSONDepth); err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	if err := strict(data, in); err != nil {
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
	if err := CheckJSON(data, MaxJSONDepth); err != nil {
		return c, fmt.Errorf("context %w", err)
	}
	if err := strict(data, &c); err != nil {
		return Context{}, fmt.Errorf("context: %w", err)
	}
	return c, nil
}

// ValidateInput checks what cannot be expressed by types: text is UTF-8 without
// NUL, embedded JSON is valid and not too deep. The engine runs it before
// anything is sent.
func ValidateInput(in Input) error {
	v := &inputCheck{}
	if custom, ok := in.(*CustomInput); ok {
		// Without this an object that is none would show no fields at all.
		if err := checkObject(custom.Fields); err != nil {
			return fmt.Errorf("input %w", err)
		}
	}
	in.shallow().visit(v)
	return v.err
}

type inputCheck struct{ contributionCheck }

func (v *inputCheck) text(name string, p *Text)       { v.contributionCheck.text(name, p.Value, 0) }
func (v *inputCheck) preview(name string, p *Preview) { v.contributionCheck.text(name, p.Text, 0) }
func (v *inputCheck) raw(name string, p *json.RawMessage) {
	v.json(name, *p, false)
}

func (v *inputCheck) list(name string, p *[]string) {
	for _, s := range *p {
		v.contributionCheck.text(name, s, 0)
	}
}
func (v *inputCheck) word(name string, p *string) { v.contributionCheck.text(name, *p, 0) }
func (v *inputCheck) flag(string, *bool)          {}
func (v *inputCheck) number(string, *int)         {}
func (v *inputCheck) other(_ string, o otherField) {
	if o.check != nil {
		o.check(&v.contributionCheck)
	}
}
