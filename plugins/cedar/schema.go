package cedar

import (
	"cmp"
	_ "embed" // for the model
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// The entity types.
const (
	typeAgent    = "Agent"
	typeUser     = "User"
	typeTool     = "Tool"
	typeServer   = "Server"
	typeCommand  = "Command"
	typeFile     = "File"
	typeHost     = "Host"
	typePrompt   = "Prompt"
	typePolicies = "Policies"
	typeAction   = "Action"
)

// action is what a rule can be about.
type action struct {
	name     string
	phase    phases.Phase // its group
	resource types.EntityType
	verb     string                // for reasons: "reads"
	on       func(*scene) []string // the ids of the resources
}

// actions are those of the model.
//
//nolint:gochecknoglobals // an immutable table
var actions = []action{
	{"call", phases.ToolPreCall, typeTool, "calls", (*scene).itself},
	{"run", phases.ToolPreCall, typeCommand, "runs", (*scene).commands},
	{"read", phases.ToolPreCall, typeFile, "reads", (*scene).reads},
	{"write", phases.ToolPreCall, typeFile, "writes", func(sc *scene) []string { return sc.facts.Writes }},
	{"name", phases.ToolPreCall, typeFile, "names", func(sc *scene) []string { return sc.facts.Names }},
	{"connect", phases.ToolPreCall, typeHost, "connects to", func(sc *scene) []string { return sc.facts.Hosts }},
	{"unknown", phases.ToolPreCall, typeTool, "does what is not known:", (*scene).unparsed},
	{"prompt", phases.PrePolicy, typePrompt, "says", (*scene).itself},
}

//go:embed model.cedarschema
var model string

// Schema is the model that rules are checked against, in Cedar's own words.
func Schema() string { return model }

// resolvedModel panics on a mistake in the model.
//
//nolint:gochecknoglobals // an immutable table
var resolvedModel = sync.OnceValue(func() *resolved.Schema {
	var s schema.Schema
	err := s.UnmarshalCedar([]byte(model))
	if err == nil {
		var r *resolved.Schema
		if r, err = s.Resolve(); err == nil {
			return r
		}
	}
	panic(err)
})

// The lines of the model that name something.
var (
	modelName   = lazyregexp.New(`(?m)^(?:  (\w+):|(?:entity|type) (\w+)|action "(\w+)")`)
	modelAction = lazyregexp.New(`(?m)^// (.*)\.\naction "(\w+)" .*resource: \[(\w+)\]`)
)

// modelNames are all names in a part of the model, which rules may use.
func modelNames(part string) (names []string) {
	for _, found := range modelName().FindAllStringSubmatch(part, -1) {
		names = append(names, cmp.Or(found[1:]...))
	}
	return names
}

// Table is the model in short, a row for each action: its name, what is judged, the type of its resource, and the names of
// that type's attributes.
func Table() [][4]string {
	var rows [][4]string
	for _, a := range modelAction().FindAllStringSubmatch(model, -1) {
		_, entity, _ := strings.Cut(model, "entity "+a[3]+" ")
		entity, _, _ = strings.Cut(entity, ";\n\n")
		rows = append(rows, [4]string{a[2], a[1], a[3], strings.Join(modelNames(entity), " ")})
	}
	return rows
}
