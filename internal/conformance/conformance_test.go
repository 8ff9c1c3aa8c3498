package conformance_test

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/internal/conformance"
	"github.com/grapnelhq/grapnel/internal/wire"
)

// checkFailed runs checks, all without a name, on the test's own plugin in a mode, and fails unless those that fail are the ones wanted.
func checkFailed(t *testing.T, mode string, only, want []string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugins of this test want a Unix system")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := conformance.Run(t.Context(), conformance.Options{
		Path: self, Args: []string{mode}, Transport: wire.TransportStdio, Calls: 100, Patience: 6 * time.Second, Only: only,
	})
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for i := range r.Results {
		if res := &r.Results[i]; res.Outcome == conformance.Failed {
			failed = append(failed, res.ID)
			t.Log(strings.Join(res.Lines(), "\n"))
		}
	}
	if diff := cmp.Diff(failed, want, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("failed checks (-got +want):\n%s", diff)
	}
}

// TestGoodPlugin: a plugin that keeps the contract fails no check, nor does one that measures what it sends.
func TestGoodPlugin(t *testing.T) {
	t.Parallel()

	checkFailed(t, "good", nil, nil)
	checkFailed(t, "measures", []string{"size.oversize"}, nil)
}

// TestFaultsAreFound: the checks that a fault is about fail.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ mode, want string }{
		{"double answer", "calls.once cancel.once"},
		{"no pong", "ping.busy"},
		{"ignored drain", "drain.answers"},
		{"invalid tool schema", "schema.tools"},
		{"wrong incarnation", "frame.echo"},
		{"late answer with another id", "frame.strays cancel.once"},
		{"noise in mid-session", "start.stdout"},
		{"invalid UTF-8", "text.clean"},
		{"child left behind", "end.children"},
		{"changing description", "describe.stable"},
		{"no needs", "needs.declared"},
		{"allows blindly", "needs.withheld"},
		{"random answers", "describe.valid cache.deterministic"},
		{"leaks descriptors", "resources.descriptors"},
		{"echo without measuring", "size.oversize"},
		{"one byte too many", "size.oversize"},
		{"small buffer", "size.largest"},
		{"ignores the cookie", "start.cookie"},
		{"silent without the cookie", "start.cookie"},
		{"no failure without the cookie", "start.cookie"},
		{"refuses its configuration", "configure.accept"},
		{"configured once", "configure.again"},
		{"dies of a wrong configuration", "configure.refuse"},
		{"a wrong configuration without an answer", "configure.refuse"},
		{"invalid configuration schema", "schema.config"},
		{"two hooks of one name", "describe.valid"},
		{"strict fields", "frame.unknown_field"},
		{"unknown body without an answer", "frame.unknown_body"},
		{"pong to an unknown body", "frame.unknown_body"},
		{"dies of a stray reply", "frame.strays"},
		{"late calls without an answer", "deadline.answer"},
		{"blocked reader", "ping.busy"},
		{"unknown hooks without an answer", "calls.unknown"},
		{"dies of forbidden", "host_calls.refused"},
		{"dies of unavailable", "host_calls.refused"},
		{"fails at the end", "end.exit"},
		{"trace at the end", "end.exit"},
		{"stays after the end", "end.exit"},
		{"ignores SIGTERM", "end.sigterm"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			want := strings.Fields(tt.want)
			found := want
			if runtime.GOOS != "linux" {
				found = slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id == "end.children" || id == "resources.descriptors" })
			}
			checkFailed(t, tt.mode, want, found)
		})
	}
}
