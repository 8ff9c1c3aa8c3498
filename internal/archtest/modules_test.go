package archtest

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// testLibraries may be required by the main module though only tests import them: they
// are small, and every package's tests use them.
var testLibraries = []string{"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "go.uber.org/goleak"}

// foreign must not be required by the main module in any way: what a host embeds leaves
// it free in the choice of its telemetry and its vendors' SDKs.
var foreign = []string{
	"go.opentelemetry.io", "cloud.google.com", "github.com/anthropics", "github.com/openai", "google.golang.org/genai", "google.golang.org/api",
	"github.com/creachadair",
}

// moduleRequirement is one requirement of a go.mod file, as "go mod edit -json" has it.
type moduleRequirement struct {
	Path     string `json:"Path"`
	Indirect bool   `json:"Indirect"`
}

// checkRequirements reports requirements that a host must not inherit: those that are
// foreign, and direct ones that only tests import.
func checkRequirements(requirements []moduleRequirement, imported []string) []string {
	var problems []string
	for _, r := range requirements {
		below := func(p string) bool { return matchPath(r.Path+"/...", p) }
		switch {
		case slices.ContainsFunc(foreign, func(p string) bool { return matchPath(p+"/...", r.Path) }):
			problems = append(problems, "go.mod requires "+r.Path+", which hosts must not inherit: it belongs to a nested module")
		case !r.Indirect && !slices.Contains(testLibraries, r.Path) && !slices.ContainsFunc(imported, below):
			problems = append(problems, "go.mod requires "+r.Path+" for tests only: they belong to the module internal/tests/oracle")
		}
	}
	return problems
}

// TestRequirements: what the main module requires is paid by every host that embeds it.
func TestRequirements(t *testing.T) {
	t.Parallel()

	root := repoRoot(t)
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []moduleRequirement `json:"Require"`
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) < 10 {
		t.Fatalf("found %d requirements: the search does not work", len(mod.Require))
	}
	graph, err := loadGraph(root)
	if err != nil {
		t.Fatal(err)
	}
	nested := nestedModules(t, root)
	var imported []string
	for pkg, imports := range graph {
		if !slices.ContainsFunc(nested, func(m string) bool { return matchPath(m+"/...", pkg) }) {
			for imp := range imports {
				imported = append(imported, imp)
			}
		}
	}
	report(t, checkRequirements(mod.Require, imported))
}

// nestedModules lists the directories of the nested modules.
func nestedModules(t *testing.T, root string) []string {
	t.Helper()
	files, err := trackedFiles(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, file := range files {
		if dir, ok := strings.CutSuffix(file, "/go.mod"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
