// Package hostservice holds the services that plugins may call in their host: the list of them with its checks, and
// the two that an engine brings itself, "state" and "model".
//
// Stability: internal.
package hostservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/configschema"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// Service is one host service: its methods by name. Plugins call it by the grant "host".
type Service map[string]Method

// Method is one method of a host service.
type Method struct {
	// Doc is a sentence for authors of plugins.
	Doc string
	// Params and Result are JSON Schemas; nil takes anything. Invalid parameters never reach Call; results are not
	// checked.
	Params, Result json.RawMessage
	// Call answers, concurrently, at most 64 times at once for one plugin, with a context that carries the calling
	// hook's deadline. Params is valid JSON of bounded depth, or nil if the schema allows that. A *phases.Error
	// reaches the plugin with its code, other errors and panics as "internal" without their text.
	Call func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error)

	params *jsonschema.Resolved
}

// Caller says for whom a host service is called.
type Caller struct {
	// Plugin is the operator's name of the calling plugin.
	Plugin string
	// Context is the context of the plugin's dispatch or tool call; zero if it calls on its own account.
	Context phases.Context

	account *Account
}

// CallerOf is a plugin as a caller, with what its calls of the model are charged to; nil outside of hooks and tools.
func CallerOf(plugin string, a *Account) Caller { return Caller{Plugin: plugin, account: a} }

// Services are the services of an engine by name, with their methods.
type Services map[string]Service

// New checks the schemas of the services and returns them, ready to be called.
func New(list map[string]Service) (Services, error) {
	all := Services{}
	for name, s := range list {
		all[name] = Service{}
		for m, declared := range s {
			if err := declared.prepare(); err != nil {
				return nil, fmt.Errorf("host service %q: method %q: %w", name, m, err)
			}
			all[name][m] = declared
		}
	}
	return all, nil
}

func (m *Method) prepare() (err error) {
	if m.Call == nil {
		return errors.New("it has no function to call")
	}
	if _, err := resolve(m.Result); err != nil {
		return fmt.Errorf("schema of the result: %w", err)
	}
	if m.params, err = resolve(m.Params); err != nil {
		return fmt.Errorf("schema of the parameters: %w", err)
	}
	return nil
}

func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// mayCall reports whether the grants allow a method, by SERVICE or SERVICE.METHOD.
func mayCall(grants []string, service, method string) bool {
	return phases.Allows(grants, service) || phases.Allows(grants, service+"."+method)
}

// Words returns what grants may name: the services with their methods, and those that hosts commonly have.
func (s Services) Words() []string {
	words := []string{ServiceState, ServiceModel, ServiceModel + ".complete", "documents"}
	for name, methods := range s {
		words = append(words, name)
		for m := range methods {
			words = append(words, name+"."+m)
		}
	}
	return slices.Sorted(slices.Values(words))
}

// Granted returns the services that the grants allow, in whole or in part, by name.
func (s Services) Granted(grants []string) []string {
	var names []string
	for name, methods := range s {
		if phases.Allows(grants, name) || slices.ContainsFunc(slices.Collect(maps.Keys(methods)), func(m string) bool { return mayCall(grants, name, m) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Find returns a method that the grants allow.
func (s Services) Find(grants []string, plugin, service, name string) (*Method, error) {
	if !mayCall(grants, service, name) {
		return nil, phases.Errorf(phases.CauseForbidden, "the plugin %s has no grant for the host service %q, nor for %q", plugin, service, service+"."+name)
	}
	methods, ok := s[service]
	if !ok {
		return nil, phases.Errorf(phases.CauseUnavailable, "this host has no service %q%s", service, suggest.DidYouMean(service, slices.Sorted(maps.Keys(s))))
	}
	m, ok := methods[name]
	if !ok {
		names := slices.Sorted(maps.Keys(methods))
		return nil, phases.Errorf(phases.CauseUnavailable, "the host service %q has no method %q%s; it has %v", service, name, suggest.DidYouMean(name, names), names)
	}
	return &m, nil
}

// Check checks the parameters of a call.
func (m *Method) Check(params json.RawMessage) error {
	value := any(map[string]any{}) // no parameters count as {}
	if len(params) > 0 {
		if err := jsonscan.Check(params, phases.MaxJSONDepth); err != nil {
			return phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
		}
		if m.params == nil {
			return nil
		}
		if err := json.Unmarshal(params, &value); err != nil {
			return phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
		}
	}
	if m.params == nil {
		return nil
	}
	if err := m.params.Validate(value); err != nil {
		return phases.Errorf(phases.CauseInvalidReply, "params: %w", configschema.Locate(m.params, value, err))
	}
	return nil
}

// Do calls the method; a panic is an error.
func (m *Method) Do(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
	return bounded.Recovered(func() (json.RawMessage, error) { return m.Call(ctx, caller, params) })
}
