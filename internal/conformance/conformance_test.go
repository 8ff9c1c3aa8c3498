package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
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

// options are those of the test's own plugin in a mode.
func options(t *testing.T, mode, transport string) conformance.Options {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugins of this test want a Unix system")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Options{Path: self, Args: []string{mode}, Transport: transport, Calls: 100, Patience: 6 * time.Second}
}

// checkFailed runs the checks and fails unless those that fail are the ones wanted.
func checkFailed(t *testing.T, o conformance.Options, want ...string) {
	t.Helper()
	r, err := conformance.Run(t.Context(), o)
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

// TestGoodPlugin: a plugin that keeps the contract fails no check.
func TestGoodPlugin(t *testing.T) {
	t.Parallel()

	for _, transport := range []string{wire.Transport, wire.TransportStdio} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			checkFailed(t, options(t, "good", transport))
		})
	}
}

// TestFaultsAreFound: each fault fails the checks that it is about.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ mode, want string }{
		{"one byte too many", "size.oversize"},
		{"small buffer", "size.largest"},
		{"ignores the cookie", "start.cookie"},
		{"silent without the cookie", "start.cookie"},
		{"no failure without the cookie", "start.cookie"},
		{"refuses its configuration", "configure.accept"},
		{"configured once", "configure.again"},
		{"dies of a wrong configuration", "configure.refuse"},
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
		{"fails at the end", "end.exit"},
		{"trace at the end", "end.exit"},
		{"stays after the end", "end.exit"},
		{"ignores SIGTERM", "end.sigterm"},
		{"double answer", "calls.once cancel.once"},
		{"no pong", "ping.busy"},
		{"ignored drain", "drain.answers"},
		{"invalid tool schema", "schema.tools"},
		{"wrong incarnation", "frame.echo"},
		{"late answer with another id", "frame.strays cancel.once"},
		{"noise in mid-session", "start.stdout"},
		{"oversize", "size.oversize"},
		{"invalid UTF-8", "text.clean"},
		{"child left behind", "end.children"},
		{"changing description", "describe.stable"},
		{"no needs", "needs.declared"},
		{"allows blindly", "needs.withheld"},
		{"random answers", "describe.valid cache.deterministic"},
		{"leaks descriptors", "resources.descriptors"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			o := options(t, tt.mode, wire.TransportStdio)
			o.Only = strings.Fields(tt.want)
			want := o.Only
			if runtime.GOOS != "linux" {
				want = slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id == "end.children" || id == "resources.descriptors" })
			}
			checkFailed(t, o, want...)
		})
	}
	o := options(t, "measures", wire.TransportStdio)
	o.Only = []string{"size.oversize"}
	checkFailed(t, o)
}

// TestLastWords: of a plugin that dies at its start, what it said to standard error is shown.
func TestLastWords(t *testing.T) {
	t.Parallel()

	for _, transport := range []string{wire.TransportStdio, "grpc"} {
		o := options(t, "no kit", transport)
		o.Only = []string{"start.handshake"}
		r, err := conformance.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Results[0].Lines(), "\n"); !strings.Contains(got, "No module named 'kit'") {
			t.Errorf("%s: got %s", transport, got)
		}
	}
}

// TestReport: a known failure is none, and a known failure that passes is one.
func TestReport(t *testing.T) {
	t.Parallel()

	known, err := conformance.ReadIDs(strings.NewReader("# ours\n ping.busy # see issue 7\n\nframe.echo\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, "no pong", wire.TransportStdio)
	o.Known, o.Only = known, []string{"frame.echo", "ping.busy", "schema.config"}
	r, err := conformance.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var xml strings.Builder
	err = r.WriteJUnit(&xml)
	if err != nil || r.Conforms || r.Failed != 1 || r.Known != 1 || !strings.Contains(xml.String(), `tests="3" failures="1" skipped="2"`) {
		t.Errorf("%s, %v:\n%s", r.Summary(), err, xml.String())
	}
}

// TestContract: what a check quotes stands in the document and the section that it names.
func TestContract(t *testing.T) {
	t.Parallel()

	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	documents := map[string]string{"WIRE.md": read("docs/WIRE.md"), "plugin.proto": read("proto/grapnel/plugin/v1/plugin.proto")}
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	plain := func(s string) string {
		s = link.ReplaceAllString(s, "$1")
		return strings.Join(strings.Fields(strings.NewReplacer("`", "", "**", "", "//", "").Replace(s)), " ")
	}
	item := regexp.MustCompile(` (\d+)$`)
	r, err := conformance.Run(t.Context(), conformance.Options{Path: "/nonexistent/plugin"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Results {
		res := &r.Results[i]
		name, section, _ := strings.Cut(res.Place, ", ")
		text := documents[name]
		if name == "WIRE.md" {
			heading := item.ReplaceAllString(section, "")
			_, after, found := strings.Cut(strings.ReplaceAll(text, "###", "##"), "\n## "+heading+"\n")
			if !found {
				t.Errorf("%s: %s has no section %q", res.ID, name, heading)
			}
			text, _, _ = strings.Cut(after, "\n## ")
			if n := item.FindStringSubmatch(section); n != nil {
				_, after, _ := strings.Cut("\n"+text, "\n"+n[1]+". ")
				text = regexp.MustCompile(`\n\d+\. |\n## `).Split(after, 2)[0]
			}
		}
		if !strings.Contains(plain(text), plain(res.Contract)) {
			t.Errorf("%s: %s does not say %q", res.ID, res.Place, res.Contract)
		}
	}
}
