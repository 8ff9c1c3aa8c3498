package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/runtime"
)

// TestProgress plays the events of a slow start and reads the terminal.
func TestProgress(t *testing.T) {
	t.Parallel()

	const wipe = "\r\x1b[K"
	plugin := func(name, state string) runtime.Event {
		return runtime.Event{Kind: runtime.EventPlugin, Plugin: name, State: state}
	}
	tests := []struct {
		name string
		do   func(p *progress)
		want string
	}{
		{"nothing before its time", func(p *progress) { p.event(plugin("a", "starting")); p.stop() }, ""},
		{"who is waited for", func(p *progress) {
			p.event(plugin("b", "starting"))
			p.event(plugin("a", "declared"))
			p.show()
			p.event(plugin("a", "quarantined"))
			p.stop()
		}, wipe + "starting plugins: a and 1 more" + wipe + "starting plugins: b" + wipe},
		{"nobody", func(p *progress) { p.event(plugin("a", "starting")); p.event(plugin("a", "ready")); p.show(); p.stop() }, ""},
		{"other events", func(p *progress) { p.event(runtime.Event{Kind: runtime.EventLog, Plugin: "a"}); p.show() }, ""},
		{"never after the end", func(p *progress) { p.stop(); p.event(plugin("a", "starting")); p.show() }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var out bytes.Buffer
			tt.do(&progress{out: &out, waiting: map[string]bool{}})
			if diff := cmp.Diff(out.String(), tt.want); diff != "" {
				t.Errorf("output (-got +want):\n%s", diff)
			}
		})
	}
}

// TestNoProgressWithoutTerminal keeps pipes clean.
func TestNoProgressWithoutTerminal(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	a := &app{err: &out}
	var o runtime.Options
	p := a.startProgress(&o)
	if o.OnEvent != nil {
		t.Error("it listens all the same")
	}
	p.show()
	p.stop()
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}
