package main

import (
	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/phases"
)

// schemaList is the JSON of schema without a name.
type schemaList struct {
	Schemas []schemaName `json:"schemas"`
}

// schemaName is one schema that can be printed.
type schemaName struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// schemaCommand prints schemas as they are, with or without --json.
func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a result, an input or the configuration",
		Long:  "Schema prints a JSON Schema (draft 2020-12). Without a NAME it lists the names.",
		Args:  atMost(1, "schema takes at most one NAME"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return schemaNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listSchemas()
			}
			for _, entry := range schemas() {
				if entry.name == args[0] {
					s, err := entry.schema()
					if err != nil {
						return unable(err)
					}
					return a.printJSON(s)
				}
			}
			return usagef("there is no schema %q%s; see: grapnel schema", args[0], phases.DidYouMean(args[0], schemaNames()))
		},
	}
}

// listSchemas lists the names, each with what it describes.
func (a *app) listSchemas() error {
	list := schemaList{Schemas: []schemaName{}}
	t := newTable("")
	for _, entry := range schemas() {
		list.Schemas = append(list.Schemas, schemaName{entry.name, entry.doc})
		t.add(entry.name, entry.doc)
	}
	if a.json {
		return a.printJSON(list)
	}
	a.printTable(t)
	return nil
}

// schemaNames are the names for completion and suggestions.
func schemaNames() []string {
	var names []string
	for _, entry := range schemas() {
		names = append(names, entry.name)
	}
	return names
}
