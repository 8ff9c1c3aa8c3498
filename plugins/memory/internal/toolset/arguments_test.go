package toolset

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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

// TestParse: what a model made up is an error that says what to do.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, data string
		want       string // the arguments, or a part of the error
	}{
		{Search, `{"query":" tabs "}`, "{Query:tabs Limit:8}"},
		{Search, `{"query":"tabs","limit":20}`, "{Query:tabs Limit:20}"},
		{List, ``, "{Scope: Category: Limit:20 Cursor:}"},
		{List, `{"scope":"user","category":"task","cursor":"c","limit":1}`, "{Scope:user Category:task Limit:1 Cursor:c}"},
		{Remember, `{"text":"x","category":"decision","scope":"thread","replaces":"01J8Z"}`, "{Text:x Category:decision Scope:thread Replaces:01J8Z}"},
		{Forget, `{"ids":["a","b"]}`, "{IDs:[a b] Query: Everything:false Scope: Confirmation:}"},
		{Forget, `{"query":"my job","confirmation":"forget-x"}`, "{IDs:[] Query:my job Everything:false Scope: Confirmation:forget-x}"},
		{Forget, `{"everything":true,"scope":"user"}`, "{IDs:[] Query: Everything:true Scope:user Confirmation:}"},
		{Search, `{"query":" \n"}`, "query is missing"},
		{Search, `{"q":"x"}`, `unknown field "q"`},
		{Search, `{"query":7}`, "query is a number and should be a string"},
		{Search, `tabs`, "invalid character"},
		{Search, `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, "more than 65536 bytes"},
		{Search, `{"query":"x","limit":21}`, "limit is 21 and should be from 1 to 20"},
		{List, `{"limit":-1}`, "limit is -1"},
		{Forget, `{}`, "either ids, or a query, or everything"},
		{Forget, `{"ids":["a"],"query":"x"}`, "either ids, or a query, or everything"},
		{Forget, `{"ids":[` + strings.Repeat(`"a",`, 50) + `"a"]}`, "51 ids; at most 50"},
		{Forget, `{"query":"x","scope":"user"}`, "scope goes with everything"},
		{Forget, `{"ids":["a"],"confirmation":"forget-x"}`, "ids need no confirmation"},
	} {
		args, err := parse(tt.tool, json.RawMessage(tt.data))
		got := fmt.Sprintf("%+v", args)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) || (err == nil) != (tt.want[0] == '{') {
			t.Errorf("%s %.80s: %.200s, want %s", tt.tool, tt.data, got, tt.want)
		}
	}
}
