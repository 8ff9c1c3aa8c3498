package config

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRelativeGrants: paths for the sandbox are those of the file, wherever the
// host happens to run.
func TestRelativeGrants(t *testing.T) {
	t.Parallel()

	const text = "version: 1\nplugins: [{name: p, grants: {read: [/srv/docs, ./docs, ../up, ., './in/*', '*'], write: [./out/../x]}}]"
	c, err := loader(nil).Parse([]byte(text), filepath.FromSlash("/etc/grapnel/grapnel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g := c.Plugins[0].Grants
	if diff := cmp.Diff(g.Read, []string{"/srv/docs", "/etc/grapnel/docs", "/etc/up", "/etc/grapnel", "/etc/grapnel/in/*", "*"}); diff != "" {
		t.Errorf("read (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(g.Write, []string{"/etc/grapnel/x"}); diff != "" {
		t.Errorf("write (-got +want):\n%s", diff)
	}
}

// TestSandboxKeys: tiers and certificates are read as they stand.
func TestSandboxKeys(t *testing.T) {
	t.Parallel()

	c := parse(t, "version: 1\nplugins:\n  - {name: a, sandbox: T2, tls: true}\n  - {name: b, sandbox: T0, grants: {read: ['*'], write: ['*'], net: ['*']}}\n  - {name: c}")
	for i, want := range []struct {
		tier string
		tls  bool
	}{{"T2", true}, {"T0", false}, {"", false}} {
		if p := c.Plugins[i]; p.Sandbox != want.tier || p.TLS != want.tls {
			t.Errorf("plugin %s: sandbox %q, tls %v; want %+v", p.Name, p.Sandbox, p.TLS, want)
		}
	}
}
