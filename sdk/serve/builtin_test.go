package serve_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

func TestBuiltins(t *testing.T) {
	t.Parallel()

	all := serve.Plugins{greeter}
	one, err := all.New("greeter")
	if err != nil {
		t.Fatal(err)
	}
	if two, err := all.New("greeter"); err != nil || one == two || two.Name != "greeter" {
		t.Errorf("%q, the same twice: %v, %v", two.Name, one == two, err)
	}
	if _, err := all.New("greter"); err == nil || !strings.Contains(err.Error(), `did you mean "greeter"?`) {
		t.Errorf("unknown: %v", err)
	}
	// The second of two plugins of one name would never run.
	if _, err := (serve.Plugins{greeter, greeter}).Launches(); err == nil || !strings.Contains(err.Error(), `two plugins are named "greeter"`) {
		t.Errorf("twice: %v", err)
	}
}
