package agentsdoc_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestReload: another configuration begins an epoch, in which what was edited is in
// the text and what was delivered may be delivered again.
func TestReload(t *testing.T) {
	t.Parallel()
	base := nestedTree(t)
	eng := inside(t, "{global: false}", runtime.Options{State: hostservice.NewMemoryState()})
	h := session(t, eng, "s", base)
	before := section(h.compile())
	if n := len(reminders(h.touch("api/x.go"))); n != 1 {
		t.Fatalf("%d reminders", n)
	}
	write(t, base+"/AGENTS.md", "top, edited")
	reload := func(settings string) error {
		cfg, err := config.Loader{}.Parse([]byte("version: 1\nplugins:\n  - name: agentsdoc\n    builtin: agentsdoc"+grants+"    config: "+settings+"\n"), "grapnel.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return eng.Reload(t.Context(), cfg)
	}
	if err := reload("{global: false, unknown: 1}"); err == nil {
		t.Fatal("a mistake is accepted")
	}
	if text := section(h.compile()); text != before {
		t.Errorf("after a reload that failed the text is\n%s", text)
	}
	if err := reload("{global: false, exclude: [web]}"); err != nil {
		t.Fatal(err)
	}
	done := h.compile()
	if text := section(done); !strings.Contains(text, "\ntop, edited\n") || len(done.Reminders) != 0 {
		t.Errorf("the reminders are %+v, the text is\n%s", done.Reminders, text)
	}
	if n := len(reminders(h.touch("api/x.go"))) + len(reminders(h.touch("web/x"))); n != 1 {
		t.Errorf("%d reminders, want that of api, for web is excluded", n)
	}
}
