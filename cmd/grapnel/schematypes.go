package main

import (
	"maps"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/internal/replay"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lint"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	recording "github.com/grapnelhq/grapnel/record"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/tree"
)

// draft names the dialect of all schemas.
const draft = surface.Draft

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
		{"compile-input", "the file of compile --input", generated[surface.TurnInput]},
		{"dispatch", "the result of dispatch --json and plugin run --json", generated[phases.Outcome]},
		{"plan", "the result of plan --json", generated[plan.Document]},
		{"explain", "the result of explain --json", generated[explanation]},
		{"manifest-list", "the result of manifest list --json", generated[surface.ManifestList]},
		{"manifest-text", "the result of manifest show --text --json", generated[manifestText]},
		{"manifest-audits", "the result of manifest audits --json", generated[auditList]},
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
		{"plugin-replay", "the result of plugin replay --json", generated[replayed]},
		{"plugin-release", "the result of plugin release --json", generated[releaseResult]},
		{"config-check", "the result of config check --json", generated[checked]},
		{"config-reload", "the result of config reload --json", generated[reloadResult]},
		{"init", "the result of init --json", generated[initialised]},
		{"serve", "the line that serve --json prints when it is ready", generated[listening]},
		{"status", "the result of status --json", generated[statusResult]},
		{"docs", "the result of docs export --json and docs import --json", generated[docsResult]},
		{"memory-list", "the result of memory list --json", generated[memoryList]},
		{"memory-search", "the result of memory search --json", generated[memoryHits]},
		{"memory-show", "the result of memory show --json", generated[memoryWhole]},
		{"memory-forget", "the result of memory forget --json", generated[memoryForgotten]},
		{"memory-export", "the result of memory export FILE --json", generated[memoryExported]},
		{"memory-import", "the result of memory import --json", generated[memoryImported]},
		{"memory-stats", "the result of memory stats --json", generated[memoryStats]},
		{"memory-item", "each line of memory export; memory import fills in what a line lacks", generated[itemstore.Item]},
		{"record", "each line of the file of --record", generated[recording.Line]},
		{"jobs-list", "the result of jobs list --json and jobs dead --json", generated[jobsList]},
		{"jobs-show", "the result of jobs show --json", generated[jobWhole]},
		{"jobs-retry", "the result of jobs retry --json", generated[jobsChanged]},
		{"jobs-remove", "the result of jobs remove --json", generated[jobsChanged]},
		{"rpc", "the gateway: methods with params and result, notifications, errors", func() (any, error) { return gateway.Schema() }},
		{"tokens", "the file of serve --token-file", func() (any, error) { return config.TokensSchema(), nil }},
		{"schema", "the result of schema --json without a name", generated[schemaList]},
		{"version", "the result of version --json", generated[versionResult]},
		{"kinds", "a contribution of any kind", kindsSchema},
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
	s, err := special.Of(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	s.Schema = draft
	return s, nil
}

// denull makes lists lists, for schemas that plugins make of their own types.
func denull(s *jsonschema.Schema) { surface.Denull(s) }

// specialSchemas are the types whose JSON reflection does not see, those of the
// command line among them. They are made anew for each schema that is asked for,
// so that they cost nothing to a command that prints none.
func specialSchemas() (surface.Schemas, error) {
	own := surface.Schemas{}
	maps.Copy(own, agentsWords())
	surface.AddWords(own, pinUnpinned, pinSame, pinChanged)
	surface.AddWords(own, explainsSection, explainsSubscription)
	surface.AddWords(own, docWritten, docRemoved, docKept, docSaved, docCreated, docConflict, docMissing, docSkipped, docRefused, docUnchanged)
	surface.AddWords(own, replay.Outcomes()...)
	surface.AddWords(own, recording.Kinds()...)
	surface.AddWords(own, jobqueue.States()...)
	surface.AddWords(own, gateway.ReloadSignal, gateway.ReloadWatch, gateway.ReloadCall)
	surface.AddWords(own, itemstore.Scopes()...)
	surface.AddWords(own, itemstore.Sources()...)
	surface.AddWords(own, turnpolicy.Categories()...)
	own[reflect.TypeFor[tree.FolderID]()] = &jsonschema.Schema{Types: []string{"null", "string"}, Description: "a folder's id; null is the root"}
	return surface.NewSchemas(own)
}

// kindsSchema is a contribution of any kind.
func kindsSchema() (any, error) {
	special, err := specialSchemas()
	if err != nil {
		return nil, err
	}
	return special.Contribution()
}

// phaseSchema is input and context of one phase. All fields may be absent.
func phaseSchema(row phases.Row) (*jsonschema.Schema, error) {
	special, err := specialSchemas()
	if err != nil {
		return nil, err
	}
	input, err := special.Of(reflect.TypeOf(row.NewInput()).Elem())
	if err != nil {
		return nil, err
	}
	c, err := special.Of(reflect.TypeFor[phases.Context]())
	if err != nil {
		return nil, err
	}
	s := surface.Object(map[string]*jsonschema.Schema{"input": input, "context": c})
	s.Schema, s.Title, s.Description = draft, string(row.Phase), row.When
	return s, nil
}
