package rpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/grapnelhq/grapnel/internal/rpc"
)

type sumParams struct {
	A int `json:"a"`
	B int `json:"b"`
}

// A server with one method, called with a batch of two requests.
func Example() {
	add := rpc.Typed("math/add", rpc.NoRight, "Adds two numbers.", func(_ context.Context, _ *rpc.Caller, p sumParams) (int, error) {
		return p.A + p.B, nil
	})
	srv, err := rpc.New(rpc.Options{Methods: []rpc.Method{add}})
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

	body := `[{"jsonrpc":"2.0","id":1,"method":"math/add","params":{"a":1,"b":2}},{"jsonrpc":"2.0","id":2,"method":"math/ad"}]`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/rpc", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(string(text), err)
	stop()
	fmt.Println(<-stopped)
	// Output:
	// [{"jsonrpc":"2.0","id":1,"result":3},{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"there is no method \"math/ad\" (did you mean \"math/add\"?)","data":{"code":"unknown_method"}}}] <nil>
	// <nil>
}

// What a method returns decides what the client gets.
func ExampleError() {
	err := &rpc.Error{Code: rpc.CodeConflict, Message: "the document is at version 3", Data: map[string]any{"actual_version": 3}}
	text, _ := err.MarshalJSON()
	fmt.Println(string(text))
	// Output:
	// {"code":-32001,"message":"the document is at version 3","data":{"actual_version":3,"code":"version_conflict"}}
}
