package serve_test

import (
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// Started by hand, a plugin says what it is and ends.
func ExampleServe() {
	err := serve.Serve(&sdk.Plugin{Name: "greeter", Version: "1.0.0"})
	fmt.Println(errors.Is(err, serve.ErrNotStartedByHost))
	// Output:
	// true
}
