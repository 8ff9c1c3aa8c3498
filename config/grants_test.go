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
