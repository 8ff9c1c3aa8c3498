package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// sectionsOf makes sections of words: "a1" is section a with content 1, "a1x"
// belongs to x.
func sectionsOf(s string) []Section {
	var out []Section
	for f := range strings.FieldsSeq(s) {
		out = append(out, Section{SectionID: f[:1], Hash: f[1:2], Owner: f[2:]})
	}
	return out
}

func TestDiffSections(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, a, b, added, removed, moved, changed, reowned string }{
		{name: "same", a: "a1 b1 c1", b: "a1 b1 c1"},
		{name: "added in front", a: "a1 b1", b: "c1 a1 b1", added: "c"},
		{name: "removed in front", a: "a1 b1 c1", b: "b1 c1", removed: "a"},
		{name: "changed", a: "a1 b1", b: "a1 b2", changed: "b"},
		{name: "reowned", a: "a1x b1", b: "a1y b1", reowned: "a"},
		{name: "changed and reowned", a: "a1x", b: "a2y", changed: "a", reowned: "a"},
		{name: "last to the front", a: "a1 b1 c1 d1", b: "d1 a1 b1 c1", moved: "d"},
		{name: "first to the end", a: "a1 b1 c1 d1", b: "b1 c1 d1 a1", moved: "a"},
		{name: "moved and changed, one added", a: "a1 b1 c1", b: "c2 e1 a1 b1", added: "e", moved: "c", changed: "c"},
		{name: "from nothing", b: "a1 b1", added: "a b"},
		{name: "to nothing", a: "a1 b1", removed: "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			d := Diff(&Manifest{Sections: sectionsOf(tt.a)}, &Manifest{Sections: sectionsOf(tt.b)}, nil, nil)
			want := SectionChanges{
				Added: words(tt.added), Removed: words(tt.removed), Moved: words(tt.moved), Changed: words(tt.changed), Reowned: words(tt.reowned),
			}
			if diff := cmp.Diff(d.Sections, want); diff != "" || d.Same != (tt.name == "same") {
				t.Errorf("same: %v (-got +want):\n%s", d.Same, diff)
			}
		})
	}
}

// words is strings.Fields that is never nil.
func words(s string) []string { return append([]string{}, strings.Fields(s)...) }

func TestDiffCounts(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(m *Manifest)
		want   string // JSON of what differs
	}{
		{"nothing", func(*Manifest) {}, `{}`},
		{"times, ids, used budgets", func(m *Manifest) {
			m.ManifestID, m.TurnID, m.Seq = "x", "y", 7
			m.CreatedAt = m.CreatedAt.Add(1)
			m.Budgets.Turn.UsedMS, m.Budgets.Phases[0].UsedMS, m.Budgets.Phases[0].UsedChars = 99, 99, 99
			m.Sections[0].SourceRefs[0].ID = "elsewhere"
		}, `{}`},
		{"cached, and the ledger", func(m *Manifest) {
			m.Runs[0].State = phases.StateCached
			m.HookSources[0].CachedFrom = "turn-0"
			m.Plugins[0].Restarts = 4
			m.Diagnostics = nil
		}, `{}`},
		{"a phase once more with the same grant", func(m *Manifest) {
			m.Budgets.Phases = append(m.Budgets.Phases, m.Budgets.Phases[0])
		}, `{}`},
		{"policy written otherwise", func(m *Manifest) { m.Policies[0].Value = json.RawMessage(` "off"`) }, `{}`},
		{
			"turn's budget", func(m *Manifest) { m.Budgets.Turn.GrantedMS = 5000 },
			`{"budgets":[{"what":"changed","name":"turn","from":{"granted_ms":10000,"granted_chars":64000},"to":{"granted_ms":5000,"granted_chars":64000}}]}`,
		},
		{"a phase with another grant", func(m *Manifest) {
			m.Budgets.Phases = append(m.Budgets.Phases, PhaseBudget{phases.PrePromptCompile, Budget{GrantedMS: 7}})
		}, `{"budgets":[{"what":"added","name":"turn.pre_prompt_compile#2","from":null,"to":{"granted_ms":7,"granted_chars":0}}]}`},
		{
			"a compaction within the session", func(m *Manifest) { m.Epoch = 1 },
			`{"head":[{"what":"changed","name":"epoch","from":"0","to":"1"}]}`,
		},
		{"a host that was started again", func(m *Manifest) { m.Epoch = -1 }, `{}`},
		{"the epoch of another session", func(m *Manifest) { m.SessionID, m.Epoch = "other", 1 }, `{}`},
		{
			"reminders", func(m *Manifest) {
				m.Reminders = append(m.Reminders, Reminder{Owner: "p.h", Type: "note", Hash: "1"}, Reminder{Owner: "p.h", Type: "note", Hash: "2"})
			},
			`{"reminders":[{"what":"added","name":"p.h/note","from":null,"to":"1"},{"what":"added","name":"p.h/note#2","from":null,"to":"2"}]}`,
		},
		{
			"policy's value", func(m *Manifest) { m.Policies[0].Value = json.RawMessage(`"on"`) },
			`{"policies":[{"what":"changed","name":"memory/mode","from":{"value":"off","priority":5,"owner":"memory.policy"},"to":{"value":"on","priority":5,"owner":"memory.policy"}}]}`,
		},
		{
			"policy's owner", func(m *Manifest) { m.Policies[0].Owner = "x" },
			`{"policies":[{"what":"reowned","name":"memory/mode","from":{"value":"off","priority":5,"owner":"memory.policy"},"to":{"value":"off","priority":5,"owner":"x"}}]}`,
		},
		{
			"tool replaced", func(m *Manifest) { m.Tools[0].Name = "write_file" },
			`{"tools":[{"what":"removed","name":"read_file","from":{"bundle_id":"files","owner":"files","hash":"HASH"},"to":null},` +
				`{"what":"added","name":"write_file","from":null,"to":{"bundle_id":"files","owner":"files","hash":"HASH"}}]}`,
		},
		{"another version", func(m *Manifest) { m.Plugins[0].Version = "2" }, `{"plugins":[{"what":"changed","name":"plugin-0",` +
			`"from":{"version":"1.2.3","sha256":"unpinned","state":"ready"},"to":{"version":"2","sha256":"unpinned","state":"ready"}}]}`},
		{"another model", func(m *Manifest) { m.Cache.Model = "m2" }, `{"head":[{"what":"added","name":"model","from":null,"to":"m2"}]}`},
		{"another end", func(m *Manifest) { m.Runs[0].State = phases.StateFailed }, `{"runs":[{"what":"changed","name":"turn.pre_prompt_compile/plugin-0.hook",` +
			`"from":{"state":"succeeded","plugin":"plugin-0"},"to":{"state":"failed","plugin":"plugin-0"}}]}`},
		{"omitted for another reason", func(m *Manifest) { m.Omitted[0].Reason = "budget" }, `{"omitted":[{"what":"changed","name":"memory/memory_recall","from":"profile","to":"budget"}]}`},
		{"a file that is gone", func(m *Manifest) { m.Files[0].Status = "missing" }, `{"files":[{"what":"changed","name":"SOUL.md","from":"loaded","to":"missing"}]}`},
		{"a host's tool", func(m *Manifest) { m.HostTools[0].Hash = "h" }, `{"host_tools":[{"what":"changed","name":"shell","from":"SHELL","to":"h"}]}`},
		{"a longer conversation", func(m *Manifest) { m.History = &History{Entries: 3, Hash: "h3"} }, `{}`},
		{"an edited one", func(m *Manifest) { m.History = &History{Entries: 2, Hash: "h3"} }, `{"history":[{"what":"changed","name":"history_edited",` +
			`"from":{"entries":2,"hash":"h2"},"to":{"entries":2,"hash":"h3"}}]}`},
		{"a shorter one", func(m *Manifest) { m.History = &History{Entries: 1, Hash: "h1"} }, `{"history":[{"what":"changed","name":"history_cut",` +
			`"from":{"entries":2,"hash":"h2"},"to":{"entries":1,"hash":"h1"}}]}`},
		{"truncation", func(m *Manifest) { m.Sections[0].Truncation = nil }, `{"sections":{"changed":["section_0"]}}`},
		{"placement", func(m *Manifest) { m.Sections[1].Placement = phases.PlacementUserMessage }, `{"sections":{"changed":["section_1"]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			a, b := sampleManifest(2, 2, 2), sampleManifest(2, 2, 2)
			a.History, b.History = &History{Entries: 2, Hash: "h2"}, &History{Entries: 2, Hash: "h2"}
			tt.change(&b)
			d := Diff(&a, &b, nil, nil)
			if diff := cmp.Diff(compact(t, d), strings.NewReplacer("HASH", Hash("tool", nil), "SHELL", Hash("shell", nil)).Replace(tt.want)); diff != "" || d.Same != (tt.want == "{}") {
				t.Errorf("same: %v (-got +want):\n%s", d.Same, diff)
			}
		})
	}
}

// compact is the JSON of a difference without what is empty.
func compact(t *testing.T, d Difference) string {
	t.Helper()
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"added", "removed", "moved", "changed", "reowned", "budgets", "policies", "tools", "reminders"} {
		if strings.Contains(string(out), `"`+list+`":null`) {
			t.Errorf("%s is null: %s", list, out)
		}
	}
	s := string(out)
	if at := strings.Index(s, `,"break":`); at > 0 {
		s = s[:at] + "}"
	}
	for _, empty := range []string{
		`"host_tools":[]`, `"reminders":[]`, `"history":[]`, `"head":[]`, `"plugins":[]`, `"runs":[]`, `"omitted":[]`, `"files":[]`, `"same":false`, `"same":true`, `"added":[]`, `"removed":[]`, `"moved":[]`, `"changed":[]`, `"reowned":[]`, `"budgets":[]`, `"policies":[]`, `"tools":[]`,
	} {
		s = strings.ReplaceAll(s, empty+",", "")
		s = strings.ReplaceAll(s, ","+empty, "")
		s = strings.ReplaceAll(s, empty, "")
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, `"sections":{},`, ""), `"sections":{}`, "")
}
