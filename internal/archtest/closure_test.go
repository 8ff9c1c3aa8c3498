package archtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	generated, generatedWhy := []string{"./internal/wire/pluginpb"}, "generated messages are for tests; package wire writes its own"
	mcpSDK, mcpWhy := []string{"github.com/modelcontextprotocol"}, "the SDK of MCP is for the plugin mcp and the gateway"
	return []closureRule{
		light("phases"),
		light("manifest"),
		light("compiler", "./plugins"),
		light("sdk", "./runtime", "./plugins"),
		light("plugins/agentsdoc", "./runtime"),
		light("plugins/cedar", "./runtime", "./config"),
		light("plugins/commandhooks", "./runtime"),
		light("plugins/fileguard", "./runtime", "./config"),
		light("plugins/memory", "./runtime"),
		light("plugins/skills", "./runtime", "./config"),
		light("plugins/mcp", "./runtime", "./config"),
		{"runtime", mcpSDK, mcpWhy},
		{"loop", mcpSDK, mcpWhy},
		{"sdk", mcpSDK, mcpWhy},
		{"sdk/serve", mcpSDK, mcpWhy},
		{"sdk/serve", []string{"./plugins", "./store", "./internal/sqldb"}, "a host links the plugins that it lists"},
		{"sdk/serve", []string{"./runtime"}, "a plugin needs no engine"},
		{"sdk/serve", generated, generatedWhy},
		{"runtime", generated, generatedWhy},
		{"cmd/grapnel", generated, generatedWhy},
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

// linkedPackages returns what each of the packages of a module links on a system, itself included.
// A package that does not exist links nothing.
func linkedPackages(ctx context.Context, root, module, goos string, pkgs ...string) (map[string][]string, error) {
	args := []string{"list", "-e", "-f", `{{if not .Error}}{{.ImportPath}} {{join .Deps " "}}{{end}}`}
	for _, pkg := range pkgs {
		args = append(args, path.Join(modulePath, pkg))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(module))
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list %s: %w: %s", pkgs, err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkgs, err)
	}
	linked := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if deps := strings.Fields(line); len(deps) > 0 {
			linked[strings.TrimPrefix(deps[0], modulePath+"/")] = deps
		}
	}
	return linked, nil
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

	root, nested := repoRoot(t), "telemetry"
	var main []string
	for _, rule := range closureRules() {
		if rule.pkg != nested && !slices.Contains(main, rule.pkg) {
			main = append(main, rule.pkg)
		}
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()

			linked, err := linkedPackages(t.Context(), root, ".", goos, main...)
			if err != nil {
				t.Fatal(err)
			}
			more, err := linkedPackages(t.Context(), root, nested, goos, nested)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(linked, more)
			for _, rule := range closureRules() {
				if len(linked[rule.pkg]) == 0 {
					t.Errorf("nothing is known of %s", rule.pkg)
				}
				report(t, checkClosure(rule, linked[rule.pkg]))
			}
		})
	}
}
