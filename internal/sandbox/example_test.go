package sandbox_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/sandbox"
)

func ExampleFromGrants() {
	p, err := sandbox.FromGrants([]string{"/srv/docs/*"}, nil, []string{"*:443"})
	fmt.Println(p.Read, p.Write, p.Net.Connect, err)
	_, err = sandbox.FromGrants(nil, nil, []string{"example.org:443"})
	fmt.Println(err)
	// Output:
	// [/srv/docs] [] [443] <nil>
	// grant "example.org:443": the sandbox knows ports and not machines; "*:443" allows this port on all of them
}
