package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/configschema"
	"github.com/grapnelhq/grapnel/internal/toolschema"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

func handshake(t *trial) error {
	h, err := t.start(wire.DefaultFrame)
	if err != nil {
		return err
	}
	t.described, err = h.hello()
	return err
}

func acceptsConfiguration(t *trial) error {
	h, err := t.ready(wire.DefaultFrame)
	if err != nil {
		return err
	}
	t.configured = h.described
	for _, f := range h.frames() {
		t.longest = max(t.longest, f.Size)
	}
	return nil
}

func descriptionIsValid(t *trial) error {
	for _, d := range []*phases.Description{t.described, t.configured} {
		table, err := tableFor(d)
		if err == nil {
			err = phases.ValidateDescription(d, table)
		}
		if err != nil {
			return errors.New(phases.Whole(err))
		}
		for _, name := range d.Requires {
			if !slices.Contains(phases.Features(), name) {
				return fmt.Errorf("it requires the feature %q, which no host has", name)
			}
		}
	}
	return nil
}

// tableFor returns a table that also has the hosts' own phases that a description names.
func tableFor(d *phases.Description) (*phases.Table, error) {
	custom := map[phases.Phase]phases.Row{}
	for i := range d.Hooks {
		if p := d.Hooks[i].Phase; strings.HasPrefix(string(p), "x.") {
			custom[p] = phases.Custom(p, "a phase of a host's own", 0, phases.Kinds()...)
		}
	}
	return phases.NewTable(slices.Collect(maps.Values(custom))...)
}

func descriptionIsStable(h *host) error {
	a, b := encode(h.t.configured), encode(h.described)
	if bytes.Equal(a, b) {
		return nil
	}
	return failf(nil, "the description in configured is another at the next start: first %s, then %s", difference(a, b), difference(b, a))
}

// difference returns the part of a around the first byte in which b differs.
func difference(a, b []byte) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.ToValidUTF8(string(a[max(0, i-20):min(len(a), i+100)]), "")
}

func toolSchemas(t *trial) error {
	if len(t.configured.Tools) == 0 {
		return skipped("the plugin has no tools")
	}
	for i := range t.configured.Tools {
		tool := &t.configured.Tools[i]
		_, removed, err := toolschema.Normal(tool.InputSchema)
		if err == nil && len(removed) > 0 {
			err = fmt.Errorf("it has parts that providers refuse: %s", strings.Join(removed, ", "))
		}
		if err != nil {
			return fmt.Errorf("the tool %q: input_schema_json is not a schema that models' providers accept: %w", tool.Name, err)
		}
	}
	return nil
}

func configSchema(t *trial) error {
	if len(t.configured.ConfigSchema) == 0 {
		return skipped("the plugin takes no configuration")
	}
	err := configschema.Check(t.configured.ConfigSchema, t.o.Config)
	if isViolation(err) {
		return nil // configure.accept is about the configuration itself
	}
	return err
}

// isViolation reports whether a schema is valid and refuses a configuration.
func isViolation(err error) bool {
	_, is := errors.AsType[*phases.ConfigError](err)
	return is
}

func refusesConfiguration(h *host) error {
	bad := violation(h.t.configured.ConfigSchema)
	if bad == nil {
		return skipped("the schema of the configuration is missing, or refuses nothing that was tried")
	}
	f, err := h.ask(&phases.Configuration{Instance: instance, Config: bad})
	if err != nil {
		return err
	}
	if err := h.alive("a wrong configuration"); err != nil {
		return err
	}
	if f.Rejected == nil && f.Err == nil {
		return skipped("the plugin leaves the check against the schema to the host, as it may")
	}
	return nil
}

// violation returns a configuration that a schema refuses; nil if it finds none.
func violation(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	tries := []any{map[string]any{"no_such_option_of_the_check": true}}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		for _, value := range []any{map[string]any{"no": []any{1}}, 17.5, "", []any{}} {
			tries = append(tries, map[string]any{name: value})
		}
	}
	for _, v := range tries {
		if data := encode(v); isViolation(configschema.Check(schema, data)) {
			return data
		}
	}
	return nil
}

func configuresAgain(h *host) error {
	list, _ := h.t.calls(2*max(1, h.t.slots()/2), callTime) // a plugin may have nothing to call
	ids := h.sendAll(list[:len(list)/2])
	id := h.send(&phases.Configuration{Instance: instance, Config: h.t.o.Config})
	ids = append(ids, h.sendAll(list[len(list)/2:])...)
	f, err := h.answer(id)
	if err != nil {
		return err
	}
	if _, err := h.description(f, "configured"); err != nil {
		return err
	}
	return h.all(ids)
}

// hooks returns the hooks that fit; skipped says why if there are none.
func (t *trial) hooks(fit func(*phases.Hook) bool, none skipped) (list []*phases.Hook, err error) {
	for i := range t.configured.Hooks {
		if hook := &t.configured.Hooks[i]; fit(hook) {
			list = append(list, hook)
		}
	}
	if len(list) == 0 {
		return nil, none
	}
	return list, nil
}

func needsDeclared(t *trial) error {
	list, err := t.hooks((*phases.Hook).Decides, "no hook decides")
	for _, hook := range list {
		if len(hook.Needs) == 0 {
			return fmt.Errorf("the hook %q decides, and has no needs: name what it must see, or \"nothing\"", hook.Name)
		}
	}
	return err
}

func withheldInputs(h *host) error {
	list, err := h.t.hooks(func(hook *phases.Hook) bool {
		return hook.Decides() && len(hook.Needs) > 0 && !slices.Contains(hook.Needs, phases.NeedsNothing)
	}, "no hook that decides needs anything")
	for _, hook := range list {
		d := dispatch(hook, plain())
		sight := phases.NewSight(hook.Needs, func(string) bool { return false })
		sight.Withhold(d)
		f, err := h.ask(d)
		if err != nil {
			return err
		}
		if f.Result == nil {
			continue
		}
		for _, c := range f.Result.Contributions {
			if decision, ok := c.(*phases.Decision); ok && decision.Verdict == phases.VerdictAllow {
				return failf([]uint64{f.ID}, "the hook %q answers allow and was not shown what it needs: %s", hook.Name, strings.Join(d.Withheld, ", "))
			}
		}
	}
	return err
}

func cacheable(h *host) error {
	list, err := h.t.hooks(func(hook *phases.Hook) bool { return hook.Cache != nil }, "no hook has a cache")
	for _, hook := range list {
		var first []byte
		for range 3 {
			f, err := h.ask(dispatch(hook, plain()))
			if err != nil {
				return err
			}
			answer := encode(f.Result)
			if first == nil {
				first = answer
			}
			if !bytes.Equal(first, answer) {
				return failf([]uint64{f.ID}, "the hook %q lets hosts cache its answers, and answers the same input first %s, then %s",
					hook.Name, difference(first, answer), difference(answer, first))
			}
		}
	}
	return err
}
