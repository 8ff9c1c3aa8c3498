package chain

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// Report is a chain and its rendering as the command line prints them. Its JSON
// is a documented shape, of which [ReportSchema] is the schema.
type Report struct {
	Root      string        `json:"root"`
	RootFound bool          `json:"root_found"`
	Dir       string        `json:"dir"`
	Preset    option.Preset `json:"preset"`
	Options   Options       `json:"options"`
	Sources   []Source      `json:"sources"`
	// Text is the instruction text, and Message the whole as it is put before
	// the model; empty when Text is.
	Text        string       `json:"text"`
	Message     string       `json:"message"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// NewReport joins a chain with its rendering. The lists are shared with neither
// argument.
func NewReport(c Chain, r Rendering) Report {
	return Report{
		Root: c.Root, RootFound: c.RootFound, Dir: c.Dir,
		Preset: c.Options.Preset, Options: c.Options,
		Sources: append([]Source{}, r.Sources...), Text: r.Text, Message: r.Message(),
		Diagnostics: append(append([]Diagnostic{}, c.Diagnostics...), r.Diagnostics...),
	}
}

// ReportSchema is the JSON Schema of [Report], made from the type.
func ReportSchema() (*jsonschema.Schema, error) {
	words := option.WordSchemas()
	option.AddWords(words, ScopeManaged, ScopeGlobal, ScopeProject, ScopeLocal, ScopeNested)
	option.AddWords(words, StateKept, StateTruncated, StateOmitted, StateSkipped, StateDuplicate)
	option.AddWords(words, SeverityError, SeverityWarning, SeverityInfo)
	return jsonschema.For[Report](&jsonschema.ForOptions{TypeSchemas: words})
}
