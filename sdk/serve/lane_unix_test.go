//go:build unix

package serve

import (
	"os"
	"strconv"
	"testing"

	"github.com/grapnelhq/grapnel/internal/wire"
)

// TestNoLane: if another program has closed the lane, whatever now has its descriptor is left alone, and the
// plugin goes without.
func TestNoLane(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Errorf("the file was closed: %v", err)
		}
	}()
	for _, value := range []string{"", "x", "-1", "98765", strconv.Itoa(int(file.Fd()))} {
		t.Setenv(wire.LaneKey, value)
		if conn, err := openLane(); conn != nil || err == nil {
			t.Errorf("%q: %v, %v", value, conn, err)
		}
	}
	if _, err := file.Stat(); err != nil {
		t.Error(err)
	}
}
