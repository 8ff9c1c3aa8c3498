package toolset

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		return Parse[GetArguments](data)
	case Remember:
		return Parse[RememberArguments](data)
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
		{Remember, `{"text":"I prefer tabs"}`, RememberArguments{Text: "I prefer tabs"}},
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
		{"unknown key", Search, `{"q":"x"}`, `unknown field "q"`},
		{"wrong type", Search, `{"query":7}`, "query is a number and should be a string"},
		{"list", Search, `["x"]`, "cannot unmarshal array"},
		{"no JSON", Search, `tabs`, "invalid character"},
		{"two objects", Search, `{"query":"x"}{}`, "more than one JSON value"},
		{"megabyte", Search, `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, "more than 65536 bytes"},
		{"many", Search, `{"query":"x","limit":21}`, "limit is 21 and should be from 1 to 20"},
		{"less than none", List, `{"limit":-1}`, "limit is -1"},
		{"nothing to forget", Forget, `{}`, "either ids, or a query, or everything"},
		{"two ways", Forget, `{"ids":["a"],"query":"x"}`, "either ids, or a query, or everything"},
		{"many ids", Forget, `{"ids":[` + strings.Repeat(`"a",`, 50) + `"a"]}`, "51 ids; at most 50"},
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
			case ForgetArguments:
				if len(a.IDs) == 0 && a.Query == "" && !a.Everything {
					t.Errorf("%+v", a)
				}
			}
		}
	})
}
