package mcp

import (
	"fmt"
	"strings"
	"testing"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	one, other := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	for _, tt := range []struct{ name, accept, want string }{
		{"a fingerprint", `{"echo": "xxh64:0123456789abcdef"}`, "is not a hash: sha256: and 64 hex digits, as the tool mcp_tools lists it"},
		{"cut off", `{"echo": "` + one[:70] + `"}`, "is not a hash"},
		{"two hashes", fmt.Sprintf(`{"read.file": %q, "read_file": %q}`, one, other), "has two hashes: for the model it is the tool srv__read_file"},
		{"one hash twice", fmt.Sprintf(`{"read.file": %q, "read_file": %q}`, one, one), ""},
		{"instructions", fmt.Sprintf(`{"(instructions)": %q}`, one), ""},
	} {
		c, err := parseConfig([]byte(`{"servers": {"srv": {"command": ["x"], "accept": ` + tt.accept + `}}}`))
		switch {
		case tt.want == "" && (err != nil || len(c.Servers["srv"].Accept) != 1):
			t.Errorf("%s: %+v, %v", tt.name, c, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
