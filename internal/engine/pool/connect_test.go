package pool

import (
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// TestConnectToEndedProcess: a plugin that speaks over standard input and output may end before its session begins.
func TestConnectToEndedProcess(t *testing.T) {
	t.Parallel()

	inc := &Incarnation{Instance: &Instance{Declared: config.Plugin{Name: "gone", Transport: config.TransportStdio}}, process: &proc.Process{}}
	if s, err := inc.connect(t.Context()); s != nil || phases.CodeOf(err) != phases.CauseSessionReset {
		t.Errorf("connect = %v, %v", s, err)
	}
}
