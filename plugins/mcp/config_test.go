package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/configschema"
)

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	one, other := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	for in, want := range map[string]string{
		`"srv": {"command": ["x"], "accept": {"echo": "xxh64:0123456789abcdef"}}`:                                   "a hash as the tool mcp_tools lists it",
		fmt.Sprintf(`"srv": {"command": ["x"], "accept": {"echo": %q}}`, one[:70]):                                  "a hash as the tool mcp_tools lists it",
		fmt.Sprintf(`"srv": {"command": ["x"], "accept": {"read.file": %q, "read_file": %q}}`, one, other):          "has two hashes: for the model it is the tool srv__read_file",
		fmt.Sprintf(`"srv": {"command": ["x"], "accept": {"read.file": %q, "read_file": %q}}`, one, one):            "",
		fmt.Sprintf(`"s_r-v": {"url": "http://x/y", "headers": {"a": "b"}, "accept": {"(instructions)": %q}}`, one): "",
		`"a__b": {"command": ["x"]}`: "not two _ in a row",
		`"a_": {"command": ["x"]}`:   "not two _ in a row",
		`"srv": null`:                "want a mapping",
		`"srv": {}`:                  "either a command or a url",
		`"srv": {"command": ["x"], "url": "http://x"}`:         "either a command or a url",
		`"srv": {"url": "http://"}`:                            "is not of the form",
		`"srv": {"command": ["x"], "headers": {"a": "b"}}`:     "headers go with a url",
		`"srv": {"url": "http://x", "env": {"a": "b"}}`:        "env goes with a command",
		`"srv": {"command": ["x"], "timeout": "-1s"}`:          "is not of the form",
		`"srv": {"command": ["x"], "max_result_bytes": -1000}`: "want at least 1000",
	} {
		data := []byte(`{"servers": {` + in + `}}`)
		err := configschema.Check(configSchema, data)
		if err == nil {
			_, err = parseConfig(data)
		}
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
