package settings

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// everything is a configuration with each key.
const everything = `{"source":"both","preset":"codelia","enabled":false,"names":["A"],"fallback_names":[],"local_names":["L"],"markers":["m"],
	"exclude":["vendor/**"],"root":"~/r","allow":["/a","~/b"],"trust":"listed","untrusted":"text","global":"/g/F.md","managed":"/m/M.md",
	"budget":{"file":1,"total":0,"files":2,"floor":3},
	"resolver":{"enabled":true,"delivery":"reminder","max_files":4,"max_file":5,"max_event":6},
	"imports":true,"child_hint":true,"subtasks":"none","watch":false,
	"codelia":{"enabled":true,"root":{"projectRootOverride":"/x","markers":[".m"],"stopAtFsRoot":true},
		"initial":{"maxFiles":7,"maxBytes":8},"resolver":{"enabled":false,"maxFilesPerResolve":9}}}`

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Config
	}{
		{"nothing", "", Config{}},
		{"empty", " {} ", Config{}},
		{"everything", everything, Config{
			Source: SourceBoth, Preset: chain.PresetCodelia, Enabled: new(false), Names: []string{"A"}, FallbackNames: []string{}, LocalNames: []string{"L"},
			Markers: []string{"m"}, Exclude: []string{"vendor/**"}, Root: "~/r", Allow: []string{"/a", "~/b"}, Trust: chain.TrustListed, Untrusted: chain.UntrustedText,
			Global: Global{Path: "/g/F.md"}, Managed: "/m/M.md", Budget: Budget{new(1), new(0), new(2), new(3)},
			Resolver: Resolver{new(true), chain.DeliverReminder, new(4), new(5), new(6)}, Imports: new(true), ChildHint: new(true),
			Subtasks: SubtasksNone, Watch: new(false),
			Codelia: &Codelia{
				Enabled: new(true), Root: CodeliaRoot{new("/x"), []string{".m"}, new(true)},
				Initial: CodeliaInitial{new(7), new(8)}, Resolver: CodeliaResolver{new(false), new(9)},
			},
		}},
		{"no global file", `{"global":false}`, Config{Global: Global{Off: true}}},
		{"global file of the preset", `{"global":true}`, Config{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(data)
			if diff := cmp.Diff(again, got); diff != "" || err != nil {
				t.Errorf("%s is read back as another (error %v)\n%s", data, err, diff)
			}
		})
	}
}
