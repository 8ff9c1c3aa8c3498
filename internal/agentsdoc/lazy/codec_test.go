package lazy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0a", 32)
	tests := []struct {
		name, data, want string
	}{
		{"nothing", "", "damaged"},
		{"no JSON", "{", "damaged"},
		{"another type", `{"schema":1,"root":7}`, "damaged"},
		{"more behind it", `{"schema":1} {}`, "damaged"},
		{"no schema", `{}`, "schema 0"},
		{"a later schema", `{"schema":2,"new":1}`, "schema 2"},
		{"an unknown field", `{"schema":1,"rot":"/"}`, "rot"},
		{"a relative root", `{"schema":1,"root":"x"}`, "absolute"},
		{"a NUL in the directory", `{"schema":1,"dir":"/\u0000"}`, "absolute"},
		{"a version without path", `{"schema":1,"delivered":[{"sha256":"` + sum + `"}]}`, "entry 0"},
		{"a version without hash", `{"schema":1,"initial":[{"path":"/x","sha256":"xyz"}]}`, "entry 0"},
		{"a negative size", `{"schema":1,"initial":[{"path":"/x","sha256":"` + sum + `","sizeBytes":-1}]}`, "entry 0"},
		{"no base64", `{"schema":1,"queue":["base64:!"]}`, "damaged"},
		{"too long", `{"schema":1,"root":"/` + strings.Repeat("x", MaxBytes) + `"}`, "at most"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode([]byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestDeliveredIsBounded delivers more than a state remembers.
func TestDeliveredIsBounded(t *testing.T) {
	t.Parallel()
	var s State
	for i := range maxDelivered + 100 {
		s.deliver(Version{Path: strings.Repeat("x", i), SHA256: "s"})
		s.cover(strings.Repeat("x", i))
	}
	if len(s.Delivered) != maxDelivered || len(s.Covered) != maxCovered {
		t.Errorf("%d versions, %d directories", len(s.Delivered), len(s.Covered))
	}
	if s.Delivered[0].Path != strings.Repeat("x", 100) {
		t.Error("not the oldest are forgotten")
	}
}

// FuzzDecode checks that what can be decoded can be encoded to the same, and that
// nothing in it makes a session fail or leave its root.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":1}`))
	f.Add([]byte(`{"schema":1,"epoch":2,"root":"/","dir":"/tmp","markers":null,"initial":[{"path":"/AGENTS.md","sha256":"` + strings.Repeat("0", 64) + `","in_prompt":true}],"queue":["base64:/3g","../x","/nowhere/x"]}`))
	f.Add([]byte(`{"schema":1,"root":"/nowhere/a","dir":"/nowhere","covered":["",".."],"delivered":[{"path":"x","real_path":"y","sha256":"` + strings.Repeat("a", 64) + `","gone":true}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		out, err := Encode(s)
		if err != nil {
			return // nothing but root and directory, and these too long
		}
		back, err := Decode(out)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
		if full, err := marshal(s); err == nil && len(full) <= MaxBytes {
			if diff := cmp.Diff(back, s); diff != "" {
				t.Fatalf("(-got +want):\n%s", diff)
			}
		}
		s.Root = "/nowhere" + s.Root // never the machine's own files
		s.Touch(chain.OS{}, chain.Default(), []string{"x", s.Root})
		s.Changed(chain.Chain{Root: s.Root, Dir: s.Dir})
		s.Resume(chain.Chain{Root: "/elsewhere", Dir: "/elsewhere"})
		s.NewEpoch(1)
	})
}

// marshal is the JSON of a state, however long.
func marshal(s State) ([]byte, error) {
	s = s.Clone()
	for _, path := range s.paths() {
		*path = encodePath(*path)
	}
	return json.Marshal(s)
}
