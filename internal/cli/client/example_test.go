package client_test

import (
	"context"
	"fmt"
	"net"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// A client that calls a method, and gets an error with a code.
func Example() {
	greet := rpc.Typed("greet", rpc.NoRight, "Greets.", func(_ context.Context, _ *rpc.Caller, p struct {
		Name string `json:"name"`
	},
	) (string, error) {
		if p.Name == "" {
			return "", rpc.Errorf(rpc.CodeInvalid, "name: it is empty")
		}
		return "Hello, " + p.Name, nil
	})
	srv, err := rpc.New(rpc.Options{Methods: []rpc.Method{greet}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Serve(ctx, srv.Handler(), l) }()

	c, err := client.Dial(ctx, "ws://"+l.Addr().String(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var text string
	err = c.Call(ctx, "greet", map[string]string{"name": "Ann"}, &text)
	fmt.Println(text, err)
	err = c.Call(ctx, "greet", map[string]string{"name": ""}, &text)
	fmt.Println(client.HasCode(err, "invalid_params"), err)
	fmt.Println(c.Close())
	stop()
	fmt.Println(<-stopped)
	// Output:
	// Hello, Ann <nil>
	// true name: it is empty (invalid_params)
	// <nil>
	// <nil>
}
