package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lint"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// namedSchema is one schema; it is made when it is asked for.
type namedSchema struct {
	name, doc string
	schema    func() (any, error)
}

// schemas lists all schemas in the order in which they are shown: files first,
// then results by command, then phases. Names of results are those of the
// commands, with a dash between the words.
func schemas() []namedSchema {
	list := []namedSchema{
		{"config", "grapnel.yaml", func() (any, error) { return config.Schema(), nil }},
		{"manifest", "a PromptManifest: the result of manifest show --json, and each line of manifest export", func() (any, error) { return manifest.Schema(), nil }},
		{"compile", "the result of compile --json", generated[runtime.Compiled]},
		{"compile-input", "the file of compile --input", generated[turnInput]},
		{"dispatch", "the result of dispatch --json and plugin run --json", generated[phases.Outcome]},
		{"plan", "the result of plan --json", generated[plan.Document]},
		{"explain", "the result of explain --json", generated[explanation]},
		{"manifest-list", "the result of manifest list --json", generated[manifestList]},
		{"manifest-text", "the result of manifest show --text --json", generated[manifestText]},
		{"manifest-diff", "the result of manifest diff --json", generated[manifest.Difference]},
		{"manifest-blame", "the result of manifest blame --json", generated[manifestBlame]},
		{"manifest-verify", "the result of manifest verify --json", generated[manifest.Verdict]},
		{"manifest-prune", "the result of manifest prune --json", generated[store.Pruned]},
		{"agents-chain", "the result of agents chain --json", pluginSchema(chain.ReportSchema)},
		{"agents-touch", "the result of agents touch --json", pluginSchema(lazy.TouchedSchema)},
		{"agents-resume", "the result of agents resume --json", pluginSchema(lazy.ResumedSchema)},
		{"agents-lint", "the result of agents lint --json", generated[lint.Report]},
		{"agents-explain", "the result of agents explain --json", generated[fileExplanation]},
		{"agents-state", "the file of agents chain --state, which touch and resume read", pluginSchema(lazy.StateSchema)},
		{"plugin-list", "the result of plugin list --json", generated[pluginList]},
		{"plugin-describe", "the result of plugin describe --json", generated[phases.Description]},
		{"plugin-pin", "the result of plugin pin --json", generated[pinResult]},
		{"config-check", "the result of config check --json", generated[checked]},
		{"init", "the result of init --json", generated[initialised]},
		{"schema", "the result of schema --json without a name", generated[schemaList]},
		{"version", "the result of version --json", generated[versionResult]},
		{"kinds", "a contribution of any kind", func() (any, error) { return contributionSchema(true) }},
	}
	for _, row := range phases.Standard().Rows() {
		list = append(list, namedSchema{
			"phase:" + string(row.Phase), "input and context of a dispatch: " + row.When,
			func() (any, error) { return phaseSchema(row) },
		})
	}
	return list
}

// generated is the schema of a Go type.
func generated[T any]() (any, error) {
	special, err := specialSchemas()
	if err != nil {
		return nil, err
	}
	s, err := schemaOf(reflect.TypeFor[T](), special)
	if err != nil {
		return nil, err
	}
	s.Schema = draft
	return s, nil
}

// schemaOf generates the schema of a type and takes null from lists and objects
// which are never null in our results.
func schemaOf(t reflect.Type, special map[reflect.Type]*jsonschema.Schema) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	denull(s)
	return s, nil
}

// denull makes lists lists: reflection allows null for every slice.
func denull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && slices.Contains(s.Types, "array") {
		s.Type, s.Types = "array", nil
	}
	denull(s.Items)
	denull(s.AdditionalProperties)
	for _, p := range s.Properties {
		denull(p)
	}
}

// specialSchemas are the types whose JSON reflection does not see: those with an
// encoding of their own, closed vocabularies, and unions. They are made anew for
// each schema that is asked for, so that they cost nothing to a command that
// prints none.
func specialSchemas() (map[reflect.Type]*jsonschema.Schema, error) {
	m := plainSchemas()
	value, err := contributionSchema(false)
	if err != nil {
		return nil, err
	}
	kinded, err := contributionSchema(true)
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

// plainSchemas are special types that hold no other special type. The words are
// listed here once more because Go has no way to ask a type for its constants; a
// word that is missing is found by the scripts, which check real results.
func plainSchemas() map[reflect.Type]*jsonschema.Schema {
	m := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():  {},
		reflect.TypeFor[time.Time]():        {Type: "string", Format: "date-time"},
		reflect.TypeFor[phases.Duration]():  {Type: "string", Examples: []any{"250ms", "2s"}},
		reflect.TypeFor[phases.Text]():      orWithheld(&jsonschema.Schema{Type: "string"}),
		reflect.TypeFor[phases.Preview]():   orWithheld(previewSchema()...),
		reflect.TypeFor[phases.OnFailure](): onFailureSchema(),
	}
	words(m, phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone)
	words(m, phases.StabilityStable, phases.StabilityDynamic)
	words(m, phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage)
	words(m, phases.VerdictAllow, phases.VerdictAsk, phases.VerdictDeny)
	words(m, phases.SeverityInfo, phases.SeverityWarning, phases.SeverityError)
	words(m, phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal)
	words(m, phases.Kinds()...)
	words(m, append(phases.Roles(), phases.StageTool)...)
	words(m, phases.VisibilityInternal, phases.VisibilityDebug, phases.VisibilityUserAudit, phases.VisibilityUserVisible)
	words(m, phases.TurnSucceeded, phases.TurnFailed, phases.TurnProviderFailure, phases.TurnInterrupted, phases.TurnBlocked)
	words(m, phases.StateSucceeded, phases.StateDenied, phases.StateFailed, phases.StateTimedOut, phases.StateCancelled, phases.StateFiltered,
		phases.StateDisabled, phases.StateUnavailable, phases.StateBudgetExhausted, phases.StateCached, phases.StateShadowed, phases.StateQueued)
	words(m, phases.PluginDeclared, phases.PluginStarting, phases.PluginReady, phases.PluginDegraded, phases.PluginBackoff,
		phases.PluginQuarantined, phases.PluginDraining, phases.PluginStopped)
	words(m, manifest.AfterTools, manifest.AfterStable, manifest.AfterDynamic)
	words(m, manifest.ChangeAdded, manifest.ChangeRemoved, manifest.ChangeChanged, manifest.ChangeReowned)
	words(m, manifest.BadAltered, manifest.BadMissing, manifest.BadReordered, manifest.BadInserted, manifest.BadFingerprint, manifest.BadSchema)
	maps.Copy(m, agentsWords())
	words(m, pinUnpinned, pinSame, pinChanged)
	words(m, explainsSection, explainsSubscription)
	return m
}

// words makes a closed vocabulary of a type.
func words[T ~string](m map[reflect.Type]*jsonschema.Schema, list ...T) {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range list {
		s.Enum = append(s.Enum, string(w))
	}
	m[reflect.TypeFor[T]()] = s
}

// object is an object with exactly these fields; those named are required.
func object(fields map[string]*jsonschema.Schema, required ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: fields, Required: required, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

// orWithheld is a text, or what stands in its place without the grant.
func orWithheld(forms ...*jsonschema.Schema) *jsonschema.Schema {
	withheld := object(map[string]*jsonschema.Schema{"withheld": {Type: "boolean"}, "chars": {Type: "integer"}}, "withheld", "chars")
	return &jsonschema.Schema{AnyOf: append(forms, withheld)}
}

// previewSchema are the forms of a preview; a bare text is a whole one.
func previewSchema() []*jsonschema.Schema {
	return []*jsonschema.Schema{
		{Type: "string"},
		object(map[string]*jsonschema.Schema{"text": {Type: "string"}, "original_length": {Type: "integer"}, "truncated": {Type: "boolean"}}),
	}
}

// onFailureSchema is a word, or words by cause.
func onFailureSchema() *jsonschema.Schema {
	word := func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Enum: []any{string(phases.FailClosed), string(phases.BestEffort), string(phases.UseInstead)}}
	}
	causes := map[string]*jsonschema.Schema{"default": word()}
	for _, c := range phases.FailureCauses() {
		causes[string(c)] = word()
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{word(), object(causes)}}
}

// contributionSchema is the union of all kinds, with or without the member
// "kind" that tells them apart: in lists it stands inside each contribution, in
// the results of a dispatch beside it.
func contributionSchema(kinded bool) (*jsonschema.Schema, error) {
	special := plainSchemas()
	union := &jsonschema.Schema{}
	if kinded {
		union.Schema = draft
	}
	for _, kind := range phases.Kinds() {
		s, err := schemaOf(reflect.TypeOf(contributionOf(kind)).Elem(), special)
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

// contributionOf makes an empty contribution of a kind by decoding one.
func contributionOf(kind phases.Kind) phases.Contribution {
	var cs phases.Contributions
	if err := cs.UnmarshalJSON([]byte(fmt.Sprintf(`[{"kind":%q}]`, kind))); err != nil {
		panic(err) // the kinds are fixed; a test makes all schemas
	}
	return cs[0]
}

// phaseSchema is input and context of one phase. All fields may be absent.
func phaseSchema(row phases.Row) (*jsonschema.Schema, error) {
	special := plainSchemas()
	input, err := schemaOf(reflect.TypeOf(row.NewInput()).Elem(), special)
	if err != nil {
		return nil, err
	}
	c, err := schemaOf(reflect.TypeFor[phases.Context](), special)
	if err != nil {
		return nil, err
	}
	s := object(map[string]*jsonschema.Schema{"input": input, "context": c})
	s.Schema, s.Title, s.Description = draft, string(row.Phase), row.When
	return s, nil
}
