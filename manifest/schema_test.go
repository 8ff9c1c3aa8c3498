package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "write schema.json anew")

// plainFields describes fields of package phases whose names were enough for Go
// readers, or that share a doc comment. It goes before doc comments.
var plainFields = map[string]string{
	"Run.Subscription":            "The full id; of a tool call `PLUGIN.TOOL`, or the tool alone where nobody has it; of a host call the caller's, with `/model.complete` behind it.",
	"Run.Hook":                    "The plugin's own name of the hook; of a tool call the tool, of a host call `model.complete`.",
	"Run.Plugin":                  "The plugin.",
	"Run.PluginVersion":           "The plugin's version; empty where the plugin was not asked.",
	"Run.Generation":              "The loaded configuration.",
	"Run.Incarnation":             "Which start of the plugin answered, from 1; 0 where none was asked.",
	"Run.Phase":                   "The phase; tool.call for a call of a tool and host.call for one of a host service, which belong to none.",
	"Run.Stage":                   "The stage: the role of the subscription; tool for a call of a tool, host for one of a host service.",
	"Run.State":                   "What became of the hook. `cached` counts as `succeeded`.",
	"Run.Attempts":                "How often it was tried; 0 where it did not run.",
	"Run.QueueMS":                 "Wall milliseconds of waiting for a slot.",
	"Run.DurationMS":              "Wall milliseconds in the call.",
	"Run.BytesIn":                 "Bytes that went to the plugin, 0 in process; of a host call to the service.",
	"Run.BytesOut":                "Bytes that came back; 0 in process.",
	"PluginRow.Code":              "Why it is not ready: a cause, or `abandoned`.",
	"Run.Cut":                     "What was cut of its contributions.",
	"Truncation.Limit":            "The one limit that cut the text.",
	"Truncation.Original":         "The length of the text that came, without frames and markers.",
	"Truncation.Kept":             "The length of what is left of it, without frames and markers.",
	"Cut.ContributionID":          "The contribution that was cut.",
	"Cut.SectionID":               "The section that its text went to; absent for a context.",
	"Omitted.Owner":               "The plugin that it came from, `builtin` or `host`.",
	"Omitted.Chars":               "The length of the omitted text; 0 for what is not text.",
	"PluginRow.Plugin":            "The operator's name of the plugin.",
	"PluginRow.Version":           "The plugin's own word for its version; empty before it has described itself.",
	"PluginRow.State":             "The state of the plugin.",
	"PluginRow.Message":           "More about that, in the words of the engine.",
	"PluginRow.Generation":        "The loaded configuration.",
	"PluginRow.Restarts":          "How often its process was started again.",
	"SourceRef.ID":                "The id of the source. A document of the thread tree is `ID@VERSION`: that very revision.",
	"HookSource.HookID":           "The plugin's own name of the hook.",
	"HookSource.SubscriptionID":   "The full id, `PLUGIN.HOOK`.",
	"HookSource.ContributionID":   "The plugin's id of the contribution, or `SUBSCRIPTION#INDEX`.",
	"HookSource.ContributionHash": "The SHA-256 of the contribution as canonical JSON.",
	"HookSource.ContributionKind": "The kind of the contribution.",
	"HookSource.SectionID":        "The section that its text went to; empty for what is no text, and for a context that is not rendered.",
	"HookSource.Phase":            "The phase that it came from.",
	"HookSource.SourceCount":      "How many `source_refs` it has.",
	"HookSource.Plugin":           "The plugin.",
	"HookSource.PluginVersion":    "The plugin's own word for its version.",
	"HookSource.CachedFrom":       "The run that a cached answer came from; empty for a fresh one.",
	"PolicyEntry.Domain":          "The domain of the policy.",
	"PolicyEntry.Key":             "The key within the domain.",
	"PolicyEntry.Value":           "Any JSON.",
	"PolicyEntry.Priority":        "The priority of the subscription that set it.",
}

func TestSchemaIsFresh(t *testing.T) {
	t.Parallel()

	want := generateSchema(t)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(Schema()), string(want)); diff != "" {
		t.Errorf("schema.json is stale: run go test ./manifest -run SchemaIsFresh -update (-got +want):\n%s", diff)
	}
}

func resolvedSchema(tb testing.TB) *jsonschema.Resolved {
	tb.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		tb.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestSchemaTakesRecordsAndNothingElse(t *testing.T) {
	t.Parallel()

	schema := resolvedSchema(t)
	tests := []struct {
		name   string
		change func(record map[string]any)
		valid  bool
	}{
		{"full record", func(map[string]any) {}, true},
		{"unknown key", func(r map[string]any) { r["extra"] = 1 }, false},
		{"null list", func(r map[string]any) { r["omitted"] = nil }, false},
		{"unknown profile", func(r map[string]any) { r["profile"] = "huge" }, false},
		{"no fingerprint", func(r map[string]any) { r["fingerprint_full"] = "xxh64:zz" }, false},
		{"null truncation", func(r map[string]any) { section(r)["truncation"] = nil }, true},
		{"section with unknown key", func(r map[string]any) { section(r)["text"] = "secret" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			m := sampleManifest(17, 20, 10)
			record := map[string]any{}
			b, err := Canonical(&m)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &record); err != nil {
				t.Fatal(err)
			}
			tt.change(record)
			if err := schema.Validate(record); (err == nil) != tt.valid {
				t.Errorf("Validate = %v, want valid: %v", err, tt.valid)
			}
		})
	}
}

// section returns the first section of a decoded record.
func section(record map[string]any) map[string]any {
	return record["sections"].([]any)[0].(map[string]any) //nolint:forcetypeassert // a test may panic
}

// generateSchema makes the schema of the Go type: shapes by reflection, words
// from the vocabulary, descriptions from doc comments.
func generateSchema(t *testing.T) []byte {
	t.Helper()
	s, err := jsonschema.For[Manifest](&jsonschema.ForOptions{TypeSchemas: wordSchemas()})
	if err != nil {
		t.Fatal(err)
	}
	d := describer{t: t, docs: fieldDocs(t, filepath.Join("..", "phases"), ".")}
	d.describe(reflect.TypeFor[Manifest](), s)
	addPatterns(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "PromptManifest"
	s.Description = "The record of what went into one prompt, from whom, and what was cut or omitted. Metadata only."
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// wordSchemas gives the closed vocabularies their words.
func wordSchemas() map[reflect.Type]*jsonschema.Schema {
	m := map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}
	add := func(t reflect.Type, words ...any) { m[t] = &jsonschema.Schema{Type: "string", Enum: words} }
	add(reflect.TypeFor[phases.Profile](), "full", "minimal", "none")
	add(reflect.TypeFor[phases.Stability](), "stable", "dynamic")
	add(reflect.TypeFor[phases.Placement](), "system", "system_message", "user_message")
	add(reflect.TypeFor[phases.Limit](), "plugin", "contribution", "subscription", "section", "total")
	add(reflect.TypeFor[phases.Role](), "transform", "contribute", "validate", "observe", "tool", "host")
	add(reflect.TypeFor[phases.Severity](), "info", "warning", "error")
	add(reflect.TypeFor[BreakAfter](), "tools", "stable", "dynamic")
	var words []any
	for _, c := range causes() {
		words = append(words, c)
	}
	add(reflect.TypeFor[Cause](), words...)
	add(reflect.TypeFor[phases.RunState](), "succeeded", "denied", "failed", "timed_out", "cancelled", "filtered", "disabled",
		"unavailable", "budget_exhausted", "cached", "shadowed", "queued")
	add(reflect.TypeFor[phases.PluginState](), "declared", "starting", "ready", "degraded", "backoff", "quarantined", "draining", "stopped")
	return m
}

// addPatterns bounds what reflection sees as mere strings.
func addPatterns(s *jsonschema.Schema) {
	const hmac = "|" + digest.PrefixHMACSHA256 + "[0-9a-f]{64}"
	fingerprint := "^(" + digest.PrefixXXH64 + "[0-9a-f]{16}" + hmac + ")$"
	hash := "^(|" + digest.PrefixSHA256 + "[0-9a-f]{64}" + hmac + ")$"
	known := strings.Replace(hash, "(|", "(", 1)
	for name, p := range s.Properties {
		switch {
		case strings.HasPrefix(name, "fingerprint_"):
			p.Pattern = fingerprint
		case strings.HasPrefix(name, "hash_"):
			p.Pattern = known
		}
	}
	section := s.Properties["sections"].Items.Properties
	section["fingerprint"].Pattern, section["hash"].Pattern = fingerprint, known
	for _, name := range []string{"content_hash", "prev", "hash"} {
		s.Properties[name].Pattern = hash
	}
	s.Properties["manifest_id"].Pattern = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
	s.Properties["created_at"].Format = "date-time"
}

type describer struct {
	t    *testing.T
	docs map[string]string
}

// describe walks type and schema side by side. It also takes null from lists,
// which in records are never nil.
func (d describer) describe(typ reflect.Type, s *jsonschema.Schema) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case s.Items != nil:
		s.Type, s.Types = "array", nil
		d.describe(typ.Elem(), s.Items)
	case s.Properties != nil:
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[name]
			if f.Anonymous || p == nil {
				continue
			}
			owner := typ
			if len(f.Index) > 1 {
				owner = typ.FieldByIndex(f.Index[:len(f.Index)-1]).Type
			}
			p.Description = strings.Replace(d.docs[owner.Name()+"."+f.Name], f.Name+" ", name+" ", 1)
			d.describe(f.Type, p)
		}
	}
}

// fieldDocs reads the doc comments of struct fields: "Type.Field" to text.
func fieldDocs(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					addFieldDocs(docs, spec)
				}
				return true
			})
		}
	}
	maps.Copy(docs, plainFields)
	return docs
}

func addFieldDocs(docs map[string]string, spec *ast.TypeSpec) {
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		text := strings.Join(strings.Fields(f.Doc.Text()), " ")
		if text == "" {
			continue
		}
		for _, name := range f.Names {
			docs[spec.Name.Name+"."+name.Name] = text
		}
	}
}
