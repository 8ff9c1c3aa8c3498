package plugintest

import "testing"

func TestConformanceReports(t *testing.T) {
	t.Parallel()

	r := newRecorder(t)
	Conformance(r, Program{})
	Conformance(r, Program{Command: []string{"no-such-program-anywhere"}})
	Conformance(r, Program{Command: []string{"/nonexistent/plugin"}})
	Conformance(r, Program{Command: []string{"go"}, Transport: "smoke"})
	r.expect(t, "the program has no command", "executable file not found", "no such file", `there is no transport "smoke"`)
}
