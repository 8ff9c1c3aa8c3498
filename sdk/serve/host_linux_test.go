package serve

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/wire"
)

// TestHostCheck: who connects is this process itself, or nobody that the system names.
func TestHostCheck(t *testing.T) {
	t.Parallel()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	own := namespace[len("pid:[") : len(namespace)-1]
	conn, other, err := wire.LanePair()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Close(), other.Close() }()
	unnamed, end := net.Pipe()
	defer func() { _, _ = unnamed.Close(), end.Close() }()
	for _, tt := range []struct {
		name, mark string
		conn       net.Conn
		want       string
	}{
		{"the host", fmt.Sprintf("%d.1.%s/x", os.Getpid(), own), conn, ""},
		{"another process", "1.1." + own + "/x", conn, "which is not the host"},
		{"another namespace", "1.1.1/x", conn, ""},
		{"no mark", "", conn, ""},
		{"no credentials", "1.1." + own + "/x", unnamed, ""},
	} {
		err := newHostCheck(func(string) string { return tt.mark })(tt.conn)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
