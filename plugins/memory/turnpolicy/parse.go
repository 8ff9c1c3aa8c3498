package turnpolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSON bounds what is read as a policy, an answer or facts, in bytes.
const maxJSON = 64 << 10

// Parse reads a policy from its JSON. Switches that are left out are disabled; what
// no policy has is an error, so that a mistyped name is noticed and not obeyed by
// half.
func Parse(data []byte) (Policy, error) {
	p := NoUse.Policy()
	if err := decode(data, &p); err != nil {
		return Policy{}, fmt.Errorf("turn policy: %w", err)
	}
	if err := p.Validate(); err != nil {
		return Policy{}, fmt.Errorf("turn policy: %w", err)
	}
	return p, nil
}

// parseOverride reads a host's override: the name of a preset, or a policy. A policy
// needs neither source nor confidence, which are those of an override in any case;
// its reason code is kept if there is one.
func parseOverride(data []byte) (Policy, error) {
	var p Policy
	if name := bytes.TrimSpace(data); len(name) > 0 && name[0] == '"' {
		var preset Preset
		err := decode(data, &preset)
		if err == nil {
			err = known("preset", preset, presets())
		}
		if err != nil {
			return Policy{}, fmt.Errorf("policy override: %w", err)
		}
		p = preset.Policy()
	} else {
		p = NoUse.Policy()
		if err := decode(data, &p); err != nil {
			return Policy{}, fmt.Errorf("policy override: %w", err)
		}
	}
	p.Source, p.Confidence = SourceOverride, 1
	if p.ReasonCode == "" {
		p.ReasonCode = reasonOverride
	}
	if err := p.Validate(); err != nil {
		return Policy{}, fmt.Errorf("policy override: %w", err)
	}
	return p, nil
}

// decode reads exactly one JSON value, strictly.
func decode(data []byte, into any) error {
	if len(data) > maxJSON {
		return fmt.Errorf("more than %d bytes", maxJSON)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}
