package plugintest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/conformance"
)

// Program is a plugin as a process, written in any language.
type Program struct {
	Command      []string // the program and its arguments. A bare name is looked up in PATH.
	Transport    string   // "grpc" (the default) or "stdio"
	Config       string   // the plugin's configuration, a JSON object
	Env          []string // Env are the names of the environment variables that the plugin inherits
	KnownFailing []string // KnownFailing are the ids of checks that are known to fail. One that passes fails the test.

	_ struct{}
}

// Conformance starts a plugin as a process, many times, and fails the test where it breaks the wire contract: it is the
// same as the command "grapnel plugin check". Checks with the severity "should" do not fail the test. It reports the
// checks that failed, each with what was sent, what came, and what the contract says.
func Conformance(t TB, p Program) {
	t.Helper()
	if len(p.Command) == 0 {
		t.Errorf("the program has no command")
		return
	}
	path, err := exec.LookPath(p.Command[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	o := conformance.Options{
		Path: path, Args: slices.Clone(p.Command[1:]), Transport: p.Transport, Env: p.Env, Known: p.KnownFailing,
	}
	if p.Config != "" {
		o.Config = json.RawMessage(p.Config)
	}
	report, err := conformance.Run(t.Context(), o)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	for i := range report.Results {
		if r := &report.Results[i]; r.Fails() {
			t.Errorf("%s", strings.Join(r.Lines(), "\n"))
		}
	}
}
