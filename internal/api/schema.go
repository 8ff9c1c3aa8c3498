package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Draft is the dialect of all schemas.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Schemas are the schemas of types with an encoding of their own, closed vocabularies, and unions.
type Schemas map[reflect.Type]*jsonschema.Schema

// NewSchemas returns the schemas of what Grapnel prints, and the caller's own. Each call makes them again.
func NewSchemas(own Schemas) (Schemas, error) {
	m := plainSchemas()
	maps.Copy(m, own)
	value, err := m.contribution(false)
	if err != nil {
		return nil, err
	}
	kinded, err := m.contribution(true)
	if err != nil {
		return nil, err
	}
	m[reflect.TypeFor[phases.Contributions]()] = &jsonschema.Schema{Type: "array", Items: kinded}
	m[reflect.TypeFor[phases.Contribution]()] = value
	record := &jsonschema.Schema{}
	if err := json.Unmarshal(manifest.Schema(), record); err != nil {
		return nil, err
	}
	record.Schema = "" // only the outermost schema names its draft
	m[reflect.TypeFor[manifest.Manifest]()] = record
	return m, nil
}

// Of generates the schema of a type. Lists are never null. It does not name its draft.
func (m Schemas) Of(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: m})
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	Denull(s)
	return s, nil
}

// Denull disallows null for lists, which reflection allows.
func Denull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && slices.Contains(s.Types, "array") {
		s.Type, s.Types = "array", nil
	}
	Denull(s.Items)
	Denull(s.AdditionalProperties)
	for _, p := range s.Properties {
		Denull(p)
	}
}

// Contribution is the schema of a contribution of any kind, with its kind inside.
func (m Schemas) Contribution() (*jsonschema.Schema, error) { return m.contribution(true) }

// contribution is the union of all kinds, with or without the member "kind": results of a
// dispatch have it beside the contribution.
func (m Schemas) contribution(kinded bool) (*jsonschema.Schema, error) {
	union := &jsonschema.Schema{}
	if kinded {
		union.Schema = Draft
	}
	for _, kind := range phases.Kinds() {
		s, err := m.Of(reflect.TypeOf(contributionOf(kind)).Elem())
		if err != nil {
			return nil, err
		}
		s.Title = string(kind)
		if kinded {
			s.Properties["kind"] = &jsonschema.Schema{Const: jsonschema.Ptr[any](string(kind))}
			s.PropertyOrder = append([]string{"kind"}, s.PropertyOrder...)
			s.Required = append([]string{"kind"}, s.Required...)
		}
		union.AnyOf = append(union.AnyOf, s)
	}
	return union, nil
}

func contributionOf(kind phases.Kind) phases.Contribution {
	var cs phases.Contributions
	if err := cs.UnmarshalJSON(fmt.Appendf(nil, `[{"kind":%q}]`, kind)); err != nil {
		panic(err) // the kinds are fixed; a test makes all schemas
	}
	return cs[0]
}

// Object is an object with exactly these fields; those named are required.
func Object(fields map[string]*jsonschema.Schema, required ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: fields, Required: required, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

// AddWords makes a closed vocabulary of a type.
func AddWords[T ~string](m Schemas, list ...T) {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range list {
		s.Enum = append(s.Enum, string(w))
	}
	m[reflect.TypeFor[T]()] = s
}

// plainSchemas are special types without other special types in them. The scripts, which
// check real results, find missing words.
func plainSchemas() Schemas {
	m := Schemas{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[phases.Duration](): {Type: "string", Examples: []any{"250ms", "2s"}},
		reflect.TypeFor[phases.Text]():     orWithheld(&jsonschema.Schema{Type: "string"}),
		reflect.TypeFor[phases.Preview](): orWithheld(&jsonschema.Schema{Type: "string"}, Object(map[string]*jsonschema.Schema{
			"text": {Type: "string"}, "original_length": {Type: "integer"}, "truncated": {Type: "boolean"},
		})),
		reflect.TypeFor[phases.OnFailure](): onFailureSchema(),
	}
	AddWords(m, phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone)
	AddWords(m, phases.StabilityStable, phases.StabilityDynamic)
	AddWords(m, phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage)
	AddWords(m, phases.VerdictAllow, phases.VerdictAsk, phases.VerdictDeny)
	AddWords(m, phases.SeverityInfo, phases.SeverityWarning, phases.SeverityError)
	AddWords(m, phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal)
	AddWords(m, phases.Kinds()...)
	AddWords(m, append(phases.Roles(), phases.StageTool, phases.StageHost)...)
	AddWords(m, phases.TurnOff)
	AddWords(m, phases.VisibilityInternal, phases.VisibilityDebug, phases.VisibilityUserAudit, phases.VisibilityUserVisible)
	AddWords(m, phases.TurnSucceeded, phases.TurnFailed, phases.TurnProviderFailure, phases.TurnInterrupted, phases.TurnBlocked)
	AddWords(m, phases.StateSucceeded, phases.StateDenied, phases.StateFailed, phases.StateTimedOut, phases.StateCancelled, phases.StateFiltered,
		phases.StateDisabled, phases.StateUnavailable, phases.StateBudgetExhausted, phases.StateCached, phases.StateShadowed, phases.StateQueued)
	AddWords(m, phases.PluginDeclared, phases.PluginStarting, phases.PluginReady, phases.PluginDegraded, phases.PluginBackoff,
		phases.PluginQuarantined, phases.PluginDraining, phases.PluginStopped)
	AddWords(m, manifest.AfterTools, manifest.AfterStable, manifest.AfterDynamic)
	AddWords(m, manifest.ChangeAdded, manifest.ChangeRemoved, manifest.ChangeChanged, manifest.ChangeReowned)
	AddWords(m, manifest.BadAltered, manifest.BadMissing, manifest.BadReordered, manifest.BadInserted, manifest.BadFingerprint, manifest.BadSchema,
		manifest.BadText, manifest.BadTree, manifest.BadDatabase)
	return m
}

func orWithheld(forms ...*jsonschema.Schema) *jsonschema.Schema {
	withheld := Object(map[string]*jsonschema.Schema{"withheld": {Type: "boolean"}, "chars": {Type: "integer"}}, "withheld", "chars")
	return &jsonschema.Schema{AnyOf: append(forms, withheld)}
}

func onFailureSchema() *jsonschema.Schema {
	word := func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Enum: []any{string(phases.FailClosed), string(phases.BestEffort), string(phases.UseInstead)}}
	}
	causes := map[string]*jsonschema.Schema{"default": word()}
	for _, c := range phases.FailureCauses() {
		causes[string(c)] = word()
	}
	return &jsonschema.Schema{Types: []string{"string", "object"}, AnyOf: []*jsonschema.Schema{word(), Object(causes)}} // a pointer's adds null to Types
}
