package settings

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write schema.json anew")

func TestSchemaIsFresh(t *testing.T) {
	t.Parallel()

	s, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Indent(&want, append(data, '\n'), "", "  "); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(Schema()), want.String()); diff != "" {
		t.Errorf("schema.json is stale: run go test ./internal/agentsdoc/settings -run SchemaIsFresh -update (-got +want):\n%s", diff)
	}
}

// generateSchema makes the schema from the types.
func generateSchema() (*jsonschema.Schema, error) {
	special := wordSchemas()
	special[reflect.TypeFor[Global]()] = &jsonschema.Schema{
		OneOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "string", MinLength: new(1)}},
	}
	s, err := jsonschema.For[Config](&jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	s.Title = "agentsdoc"
	for _, n := range (&Config{}).numbers() {
		field := s
		for name := range strings.SplitSeq(strings.TrimPrefix(n.pointer, "/"), "/") {
			field = field.Properties[name]
		}
		field.Minimum = new(float64(n.least))
	}
	return s, nil
}
