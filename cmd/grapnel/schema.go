package main

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
	"github.com/grapnelhq/grapnel/internal/api"
	recording "github.com/grapnelhq/grapnel/internal/cli/record"
	"github.com/grapnelhq/grapnel/internal/cli/replay"
	"github.com/grapnelhq/grapnel/internal/conformance"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

type schemaList struct {
	Schemas []schemaName `json:"schemas"`
}

type schemaName struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func (a *app) schema(_ context.Context, _ *noFlags, args []string) error {
	list := schemaList{Schemas: []schemaName{}}
	t := newTable("", "")
	for _, entry := range a.schemas() {
		if len(args) > 0 && entry.name == args[0] {
			s, err := entry.schema()
			if err != nil {
				return unable(err)
			}
			return a.printJSON(s)
		}
		list.Schemas = append(list.Schemas, schemaName{entry.name, entry.doc})
		t.add(entry.name, entry.doc)
	}
	if len(args) > 0 {
		return usagef("there is no schema %q%s; see: grapnel schema", args[0], a.suggestSchema(args[0]))
	}
	return a.print(list, func() { a.printTable(t) })
}

func (a *app) completeSchemas(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.schemaNames(), cobra.ShellCompDirectiveNoFileComp
}

// suggestSchema also finds the name of a phase without its prefix.
func (a *app) suggestSchema(name string) string {
	return cmp.Or(suggest.DidYouMean(name, a.schemaNames()), suggest.DidYouMean("phase:"+name, a.schemaNames()))
}

func (a *app) schemaNames() []string {
	var names []string
	for _, entry := range a.schemas() {
		names = append(names, entry.name)
	}
	return names
}

type namedSchema struct {
	name, doc string
	schema    func() (any, error)
}

// schemas are those of commands' results, named after the commands, with a dash between the words, and of other files.
func (a *app) schemas() []namedSchema {
	list := []namedSchema{
		{"config", "grapnel.yaml", func() (any, error) { return config.Schema(), nil }},
		{"manifest", "a PromptManifest: the result of manifest show --json, and each line of manifest export", func() (any, error) { return manifest.Schema(), nil }},
		{"manifest-text", "the result of manifest show --text --json", generated[manifestText]},
		{"manifest-proven", "the result of manifest verify --proof FILE --json", generated[provenRecord]},
		{"compile-input", "the file of compile --input", generated[api.TurnInput]},
		{"agents-state", "the file of agents chain --state, which touch and resume read", generated[lazy.State]},
		{"memory-item", "each line of memory export; memory import fills in what a line lacks", generated[itemstore.Item]},
		{"record", "each line of the file of --record", generated[recording.Line]},
		{"rpc", "the gateway: methods with params and result, notifications, errors", func() (any, error) { return gateway.Schema() }},
		{"tokens", "the file of serve --token-file", func() (any, error) { return config.TokensSchema(), nil }},
		{"kinds", "a contribution of any kind", kindsSchema},
	}
	for c, schema := range a.results {
		words := strings.TrimPrefix(c.CommandPath(), "grapnel ")
		list = append(list, namedSchema{strings.ReplaceAll(words, " ", "-"), "the result of " + words + " --json", schema})
	}
	slices.SortFunc(list, func(a, b namedSchema) int { return strings.Compare(a.name, b.name) })
	for _, row := range phases.Standard().Rows() {
		list = append(list, namedSchema{
			"phase:" + string(row.Phase), "input and context of a dispatch: " + row.When,
			func() (any, error) { return phaseSchema(row) },
		})
	}
	return list
}

func generated[T any]() (any, error) {
	special, err := specialSchemas()
	if err != nil {
		return nil, err
	}
	s, err := special.Of(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	s.Schema = api.Draft
	return s, nil
}

func specialSchemas() (api.Schemas, error) {
	own := api.Schemas{}
	api.AddWords(own, chain.Presets()...)
	api.AddWords(own, chain.OverrideFallsThrough, chain.OverrideShadows)
	api.AddWords(own, chain.TrustAll, chain.TrustListed, chain.TrustNone)
	api.AddWords(own, chain.UntrustedNames, chain.UntrustedSkip, chain.UntrustedText)
	api.AddWords(own, chain.LayoutDelimited, chain.LayoutJoined, chain.LayoutTitled, chain.LayoutContents, chain.LayoutContext, chain.LayoutUntrimmed)
	api.AddWords(own, chain.ImportOff, chain.ImportLines, chain.ImportInline, chain.ImportListed)
	api.AddWords(own, chain.PlaceSystem, chain.PlaceUserMessage, chain.PlaceSystemMessage)
	api.AddWords(own, chain.DeliverBody, chain.DeliverReminder, chain.DeliverOff)
	api.AddWords(own, chain.ChangedByHash, chain.ChangedByTimeOrHash, chain.ChangedNeverResolved)
	api.AddWords(own, chain.ScopeManaged, chain.ScopeGlobal, chain.ScopeProject, chain.ScopeLocal, chain.ScopeNested)
	api.AddWords(own, chain.StateKept, chain.StateTruncated, chain.StateOmitted, chain.StateSkipped, chain.StateDuplicate)
	api.AddWords(own, reminder.New, reminder.Updated, reminder.Removed)
	api.AddWords(own, lazy.WhatDir, lazy.WhatRoot, lazy.WhatMarkers, lazy.WhatUpdated, lazy.WhatAdded, lazy.WhatRemoved)
	api.AddWords(own, pinUnpinned, pinSame, pinChanged)
	api.AddWords(own, explain.OfSection, explain.OfSubscription, explain.OfPlugin, explain.OfTool, explain.OfSentence)
	api.AddWords(own, docWritten, docRemoved, docKept, docSaved, docCreated, docConflict, docMissing, docSkipped, docRefused, docUnchanged)
	api.AddWords(own, replay.Outcomes()...)
	api.AddWords(own, recording.Kinds()...)
	api.AddWords(own, conformance.Severities()...)
	api.AddWords(own, conformance.Outcomes()...)
	api.AddWords(own, jobs.StateWaiting, jobs.StateScheduled, jobs.StateRunning, jobs.StateDead)
	api.AddWords(own, gateway.ReloadSignal, gateway.ReloadWatch, gateway.ReloadCall)
	api.AddWords(own, itemstore.Scopes()...)
	api.AddWords(own, agent.User, agent.Project, agent.Local)
	api.AddWords(own, install.Effects()...)
	api.AddWords(own, itemstore.Sources()...)
	api.AddWords(own, turnpolicy.Categories()...)
	own[reflect.TypeFor[tree.FolderID]()] = &jsonschema.Schema{Types: []string{"null", "string"}, Description: "a folder's id; null is the root"}
	return api.NewSchemas(own)
}

func kindsSchema() (any, error) {
	special, err := specialSchemas()
	if err != nil {
		return nil, err
	}
	return special.Contribution()
}

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
	s := api.Object(map[string]*jsonschema.Schema{"input": input, "context": c})
	s.Schema, s.Title, s.Description = api.Draft, string(row.Phase), row.When
	return s, nil
}
