package serve

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// connected returns the server's end of a connection of this process to itself.
func connected(t *testing.T) net.Conn {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	client, err := (&net.Dialer{}).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func TestHostCheck(t *testing.T) {
	t.Parallel()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	namespace = strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
	tests := []struct {
		name, mark, want string
	}{
		{"the host", fmt.Sprintf("%d.1.%s/x", os.Getpid(), namespace), ""},
		{"another process", fmt.Sprintf("1.1.%s/x", namespace), "which is not the host"},
		{"a host of another namespace", "1.1.1/x", ""},
		{"no mark", "", ""},
		{"no mark of ours", "a.b.c", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check := newHostCheck(func(name string) string {
				if name != markKey {
					t.Errorf("asks for %s", name)
				}
				return tt.mark
			})
			err := check(connected(t))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			a, b := net.Pipe()
			defer func() { _, _ = a.Close(), b.Close() }()
			if err := check(a); err != nil {
				t.Errorf("a connection without credentials: %v", err)
			}
		})
	}
}
