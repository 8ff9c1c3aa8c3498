package toolset

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
)

// parse reads the arguments of a tool by its name.
func parse(tool string, data json.RawMessage) (any, error) {
	switch tool {
	case Search:
		return ParseSearch(data)
	case List:
		return ParseList(data)
	case Get:
		return ParseGet(data)
	case Remember:
		return ParseRemember(data)
	}
	return ParseForget(data)
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		tool, data string
		want       any
	}{
		{Search, `{"query":" tabs "}`, SearchArguments{Query: "tabs", Limit: 8}},
		{Search, `{"query":"tabs","limit":20}`, SearchArguments{Query: "tabs", Limit: 20}},
		{Search, `{"query":"NEAR(\"a\" OR b*) NOT c:d"}`, SearchArguments{Query: `NEAR("a" OR b*) NOT c:d`, Limit: 8}},
		{List, ``, ListArguments{Limit: 20}},
		{List, ` {} `, ListArguments{Limit: 20}},
		{
			List, `{"scope":"user","category":"task","cursor":"c","limit":1}`,
			ListArguments{Scope: itemstore.ScopeUser, Category: turnpolicy.Task, Cursor: "c", Limit: 1},
		},
		{Get, `{"id":"01J8Z"}`, GetArguments{ID: "01J8Z"}},
		{Remember, `{"text":"I prefer tabs\n"}`, RememberArguments{Text: "I prefer tabs", Category: turnpolicy.Factual}},
		{
			Remember, `{"text":"x","category":"decision","scope":"thread","replaces":"01J8Z"}`,
			RememberArguments{Text: "x", Category: turnpolicy.Decision, Scope: itemstore.ScopeThread, Replaces: "01J8Z"},
		},
		{Forget, `{"ids":["a","b"]}`, ForgetArguments{IDs: []string{"a", "b"}}},
		{Forget, `{"query":"my job","confirmation":"forget-x"}`, ForgetArguments{Query: "my job", Confirmation: "forget-x"}},
		{Forget, `{"everything":true,"scope":"user"}`, ForgetArguments{Everything: true, Scope: itemstore.ScopeUser}},
	}
	for _, tt := range tests {
		t.Run(tt.tool+tt.data, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tt.tool, json.RawMessage(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestParseRefuses: what a model made up is an error that says what to do.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, tool, data, want string }{
		{"no query", Search, `{}`, "query is missing"},
		{"blank query", Search, `{"query":" \n"}`, "query is missing"},
		{"long query", Search, `{"query":"` + strings.Repeat("é", maxQuery+1) + `"}`, "query has 501 characters; at most 500"},
		{"unknown key", Search, `{"q":"x"}`, `unknown field "q"`},
		{"wrong type", Search, `{"query":7}`, "query is a number and should be a string"},
		{"list", Search, `["x"]`, "cannot unmarshal array"},
		{"no JSON", Search, `tabs`, "invalid character"},
		{"two objects", Search, `{"query":"x"}{}`, "more than one JSON value"},
		{"megabyte", Search, `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, "more than 65536 bytes"},
		{"NUL", Search, `{"query":"a\u0000"}`, "NUL"},
		{"many", Search, `{"query":"x","limit":21}`, "limit is 21 and should be from 1 to 20"},
		{"less than none", List, `{"limit":-1}`, "limit is -1"},
		{"scope", List, `{"scope":"mine"}`, `scope is "mine" and should be one of`},
		{"category", List, `{"category":"joke"}`, `category is "joke"`},
		{"cursor", List, `{"cursor":"` + strings.Repeat("x", 201) + `"}`, "cursor has 201"},
		{"no id", Get, `{}`, "id is missing"},
		{"long id", Get, `{"id":"` + strings.Repeat("x", 65) + `"}`, "id has 65"},
		{"no text", Remember, `{"text":""}`, "text is missing"},
		{"long text", Remember, `{"text":"` + strings.Repeat("x", 801) + `"}`, "text has 801"},
		{"remember scope", Remember, `{"text":"x","scope":"all"}`, "scope is"},
		{"remember category", Remember, `{"text":"x","category":"all"}`, "category is"},
		{"long replaces", Remember, `{"text":"x","replaces":"` + strings.Repeat("x", 65) + `"}`, "replaces has 65"},
		{"nothing to forget", Forget, `{}`, "either ids, or a query, or everything"},
		{"two ways", Forget, `{"ids":["a"],"query":"x"}`, "either ids, or a query, or everything"},
		{"many ids", Forget, `{"ids":[` + strings.Repeat(`"a",`, 50) + `"a"]}`, "51 ids; at most 50"},
		{"empty id", Forget, `{"ids":[""]}`, "ids is missing"},
		{"scope of a query", Forget, `{"query":"x","scope":"user"}`, "scope goes with everything"},
		{"confirmed ids", Forget, `{"ids":["a"],"confirmation":"forget-x"}`, "ids need no confirmation"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.tool, json.RawMessage(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// resolved is the schema of a tool, ready for use.
func resolved(tb testing.TB, tool string) *jsonschema.Resolved {
	tb.Helper()
	data, err := schemas.ReadFile("schemas/" + tool + ".json")
	if err != nil {
		tb.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		tb.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestSchemasAgree: what the schemas refuse the tools refuse, and the reverse, but for
// what a schema cannot say.
func TestSchemasAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 2))
	values := []any{nil, "", "x", strings.Repeat("x", 100), strings.Repeat("x", 700), strings.Repeat("x", 801), 1, 20, 21, 51, -1, true, "user", "task", []string{"a"}, []string{}}
	keys := []string{"query", "limit", "scope", "category", "cursor", "id", "ids", "text", "replaces", "everything", "confirmation", "other"}
	schemas := map[string]*jsonschema.Resolved{}
	for _, tool := range Names() {
		schemas[tool] = resolved(t, tool)
	}
	agreed := 0
	for range 4000 {
		tool := Names()[r.IntN(5)]
		args := map[string]any{}
		for range 1 + r.IntN(2) {
			args[keys[r.IntN(len(keys))]] = values[r.IntN(len(values))]
		}
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		_, refused := parse(tool, data)
		var instance any
		if err := json.Unmarshal(data, &instance); err != nil {
			t.Fatal(err)
		}
		invalid := schemas[tool].Validate(instance)
		switch {
		case refused == nil && invalid == nil:
			agreed++
		case refused == nil && !lenient(args):
			t.Fatalf("%s takes %s, which its schema does not: %v", tool, data, invalid)
		case invalid == nil && tool != Forget:
			t.Fatalf("%s refuses %s, which its schema does not: %v", tool, data, refused)
		}
	}
	if agreed < 50 {
		t.Errorf("only %d calls were good", agreed)
	}
}

// lenient reports whether there is something that counts as omitted.
func lenient(args map[string]any) bool {
	for _, v := range args {
		if v == nil || v == "" || fmt.Sprint(v) == "[]" {
			return true
		}
	}
	return false
}

// FuzzParse: arguments that are taken are within their bounds.
func FuzzParse(f *testing.F) {
	f.Add(`{"query":"x","limit":3}`)
	f.Add(`{"text":"x","category":"task"}`)
	f.Add(`{"ids":["a"]}`)
	f.Add(`{"everything":true,"scope":"user"}`)
	f.Fuzz(func(t *testing.T, data string) {
		for _, tool := range Names() {
			got, err := parse(tool, json.RawMessage(data))
			if err != nil {
				continue
			}
			switch a := got.(type) {
			case SearchArguments:
				if a.Query == "" || a.Limit < 1 || a.Limit > maxHits {
					t.Errorf("%+v", a)
				}
			case ListArguments:
				if a.Limit < 1 || a.Limit > maxPage {
					t.Errorf("%+v", a)
				}
			case RememberArguments:
				if a.Text == "" || a.Category == "" {
					t.Errorf("%+v", a)
				}
			case ForgetArguments:
				if len(a.IDs) == 0 && a.Query == "" && !a.Everything {
					t.Errorf("%+v", a)
				}
			}
		}
	})
}
