package plan

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "write what is got into testdata/*.txtar")

// goldenInput is the file "in.json" of a case.
type goldenInput struct {
	Budgets map[phases.Phase]struct {
		Time    phases.Duration `json:"time"`
		Require []string        `json:"require"`
	} `json:"budgets"`
	Services []string `json:"services"`
	Plugins  []struct {
		Name        string                     `json:"name"`
		Description *phases.Description        `json:"description"`
		Grants      phases.Grants              `json:"grants"`
		Overrides   map[string]phases.Override `json:"overrides"`
		Command     bool                       `json:"command"`
	} `json:"plugins"`
}

// TestGolden runs each testdata/*.txtar: in.json is what is declared, the
// output is plan.json (phases with subscriptions only) and notes.json, or
// error.txt.
func TestGolden(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()

			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := archive.Files[1:]
			got := golden(t, archive.Files[0])
			if *update {
				archive.Files = append(archive.Files[:1:1], got...)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(texts(got), texts(want)); diff != "" {
				t.Errorf("output (-got +want); -update writes it:\n%s", diff)
			}
		})
	}
}

func texts(files []txtar.File) map[string]string {
	m := map[string]string{}
	for _, f := range files {
		m[f.Name] = string(f.Data)
	}
	return m
}

func golden(t *testing.T, in txtar.File) []txtar.File {
	t.Helper()
	var input goldenInput
	if err := json.Unmarshal(in.Data, &input); err != nil {
		t.Fatalf("%s: %v", in.Name, err)
	}
	o := Options{Budgets: map[phases.Phase]Budget{}, Services: input.Services}
	for phase, b := range input.Budgets {
		o.Budgets[phase] = Budget{b.Time.D(), b.Require}
	}
	var plugins []Plugin
	for _, p := range input.Plugins {
		plugins = append(plugins, Plugin{Name: p.Name, Description: p.Description, Grants: p.Grants, Overrides: p.Overrides, Command: p.Command})
	}
	p, notes, err := Build(plugins, o)
	if err != nil {
		return []txtar.File{{Name: "error.txt", Data: []byte(err.Error() + "\n")}}
	}
	d := View(p, "")
	shown := Document{Phases: []PhaseView{}}
	for _, ph := range d.Phases {
		if len(ph.Stages)+len(ph.Off) > 0 {
			shown.Phases = append(shown.Phases, ph)
		}
	}
	return []txtar.File{{Name: "plan.json", Data: indented(t, shown)}, {Name: "notes.json", Data: indented(t, notes)}}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}
