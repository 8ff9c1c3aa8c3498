package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/store"
)

// A gateway over a tree, without an engine or a log.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, errDir := os.MkdirTemp("", "example")
	defer func() { _ = os.RemoveAll(dir) }()
	kept, errStore := store.Open(ctx, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err := errors.Join(errDir, errStore); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = kept.Close() }()
	folders, errTree := kept.Tree(ctx)
	g, errGateway := gateway.New(gateway.Options{Tree: folders})
	if err := errors.Join(errTree, errGateway); err != nil {
		fmt.Println(err)
		return
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- g.Serve(ctx, listener) }()

	url := "http://" + listener.Addr().String() + "/rpc"
	call := func(request string) {
		resp, err := http.Post(url, "application/json", bytes.NewReader([]byte(request))) //nolint:noctx // an example
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close() //nolint:errcheck // only read
		text, _ := io.ReadAll(resp.Body)
		fmt.Println(string(text))
	}
	call(`{"jsonrpc": "2.0", "id": 1, "method": "workspace/create", "params": {"id": "home", "name": "Home"}}`)
	call(`{"jsonrpc": "2.0", "id": 2, "method": "thread/agents_doc/get", "params": {"workspace_id": "home"}}`)

	stop()
	fmt.Println(<-done)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"workspace":{"id":"home","name":"Home"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"explicit":null,"effective":null,"prompt_chars":0}}
	// <nil>
}
