package archtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// closureRule says what must not be linked into a package, however it gets
// there. Forbidden names are import paths; our own begin with "./", since std
// has a package runtime too. Each stands for all below it.
type closureRule struct {
	pkg       string
	forbidden []string
	why       string
}

// wireStack is what a program pays for when it speaks the wire contract.
var wireStack = []string{
	"google.golang.org/grpc", "google.golang.org/protobuf",
	"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "./internal/wire", "./internal/proc",
}

// closureRules is the list of promises about linking.
func closureRules() []closureRule {
	light := func(pkg string, more ...string) closureRule {
		return closureRule{pkg, append(slices.Clone(wireStack), more...), "it is imported by programs that serve no wire"}
	}
	return []closureRule{
		light("phases"),
		light("manifest"),
		light("compiler", "./plugins"),
		light("sdk", "./runtime", "./plugins"),
		light("plugins/agentsdoc", "./runtime"),
		light("plugins/memory", "./runtime"),
		light("plugins/skills", "./runtime", "./config"),
		{"sdk/serve", []string{"./runtime"}, "a plugin needs no engine"},
		{"runtime", []string{"./plugins", "./sdk"}, "the engine knows no plugin by name"},
		{"runtime", []string{"github.com/hashicorp"}, "the host's side of go-plugin's protocol is internal/proc's: it is a security boundary"},
		{"telemetry", []string{"go.opentelemetry.io/otel/sdk", "./sdk", "./plugins", "github.com/prometheus"}, "the host brings the SDK"},
		{
			"cmd/grapnel",
			[]string{"github.com/anthropics", "github.com/openai", "google.golang.org/genai"},
			"the command talks to no model; vendor SDKs are for hosts",
		},
	}
}

// linkedPackages returns what a package of the main module links on a system,
// itself included. A package that does not exist links nothing.
func linkedPackages(ctx context.Context, root, pkg, goos string) ([]string, error) {
	entries, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-f", "{{.ImportPath}}", "./"+pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list %s: %w: %s", pkg, err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return strings.Fields(string(out)), nil
}

// checkClosure reports each forbidden name that is linked, with one package as
// an example: behind the first there are usually dozens.
func checkClosure(rule closureRule, linked []string) []string {
	var problems []string
	for _, name := range rule.forbidden {
		for _, imp := range linked {
			if own, ok := ownPath(imp); ok {
				imp = "./" + own
			}
			if matchPath(name+"/...", imp) {
				problems = append(problems, fmt.Sprintf("%s links %s: %s (go list -deps ./%s)", rule.pkg, imp, rule.why, rule.pkg))
				break
			}
		}
	}
	return problems
}

func TestLinkedPackages(t *testing.T) {
	t.Parallel()

	root := repoRoot(t)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, rule := range closureRules() {
			t.Run(goos+"/"+rule.pkg, func(t *testing.T) {
				t.Parallel()

				linked, err := linkedPackages(t.Context(), root, rule.pkg, goos)
				if err != nil {
					t.Fatal(err)
				}
				report(t, checkClosure(rule, linked))
			})
		}
	}
}

func TestLinkedPackagesSeesDependencies(t *testing.T) {
	t.Parallel()

	got, err := linkedPackages(t.Context(), repoRoot(t), "internal/archtest", "linux")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{modulePath + "/internal/archtest"}; !cmp.Equal(got, want) {
		t.Errorf("archtest links %q, want %q", got, want)
	}
	got, err = linkedPackages(t.Context(), repoRoot(t), "no/such/package", "linux")
	if err != nil || got != nil {
		t.Errorf("missing package: got %q, %v, want nothing", got, err)
	}
}

func TestCheckClosureFindsProblems(t *testing.T) {
	t.Parallel()

	rule := closureRule{pkg: "sdk", forbidden: []string{"google.golang.org/grpc", "./runtime"}, why: "because"}
	got := checkClosure(rule, []string{
		"runtime", "fmt", "google.golang.org/grpc/codes", "google.golang.org/grpc", "google.golang.org/grpcurl",
		modulePath + "/runtime", modulePath + "/phases", modulePath + "/sdk",
	})
	want := []string{
		"sdk links google.golang.org/grpc/codes: because (go list -deps ./sdk)",
		"sdk links ./runtime: because (go list -deps ./sdk)",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("problems (-got +want):\n%s", diff)
	}
}
