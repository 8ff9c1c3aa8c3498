package config

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestAccepted reads testdata/accepted.txtar: what could be taken for a mistake.
func TestAccepted(t *testing.T) {
	t.Parallel()

	archive, err := txtar.ParseFile("testdata/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()

			parse(t, string(f.Data))
		})
	}
}

func TestNormalised(t *testing.T) {
	t.Parallel()

	upper, lower := strings.Repeat("AB", 32), strings.Repeat("ab", 32)
	c := parse(t, `version: 1
plugins:
  - name: p
    command: /bin/x/../y
    sha256: `+upper+`
    pins: {/bin/sh: `+upper+`}
    grants: {see: [], tools: }
    env: {set: {}}
    subscriptions:
      p.h: {kinds: [], after: [], fallback: []}
      p.i: {}
`)
	p := c.Plugins[0]
	if p.SHA256 != lower || p.Pins["/bin/sh"] != lower {
		t.Errorf("checksums: got %s and %v", p.SHA256, p.Pins)
	}
	if p.Path != "/bin/y" || p.Command != "/bin/x/../y" {
		t.Errorf("command: got %s at %s", p.Command, p.Path)
	}
	if p.Grants.See != nil || p.Grants.Tools != nil || p.Env.Set != nil || p.Config != nil {
		t.Errorf("what is empty is not as if absent: %#v", p.Grants)
	}
	// In an override "none" differs from "as proposed".
	h, i := p.Subscriptions["p.h"], p.Subscriptions["p.i"]
	if h.Kinds == nil || h.After == nil || *h.After == nil || h.Fallback == nil {
		t.Errorf("empty lists are absent: %+v", h)
	}
	if i.Kinds != nil || i.After != nil || i.Fallback != nil {
		t.Errorf("absent lists are there: %+v", i)
	}
}
