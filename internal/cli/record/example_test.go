package record_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/cli/record"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// A host records by putting a writer's Write into the options of its engine.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only litter in a temporary folder
	path := filepath.Join(dir, "calls.jsonl")
	w, err := record.Open(path, record.Options{Program: "my host"})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := runtime.Options{OnExchange: w.Write}

	// The engine does this for each call of a plugin.
	err = o.OnExchange(&runtime.Exchange{
		Kind: runtime.ExchangeTool, Plugin: "weather", Subscription: "weather.look",
		ToolCall: &phases.ToolCall{Tool: "look"}, ToolResult: &phases.ToolResult{Content: []byte(`"rain"`)},
	})
	if err = errors.Join(err, w.Close()); err != nil { // after the engine's Close
		fmt.Println(err)
		return
	}
	recorded, omitted, _ := w.Counts()
	fmt.Println(recorded, "recorded,", omitted, "omitted")
	// Output: 1 recorded, 0 omitted
}

// Reading gives the exchanges in the order in which they ended.
func ExampleNewReader() {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only litter in a temporary folder
	path := filepath.Join(dir, "calls.jsonl")
	w, err := record.Open(path, record.Options{})
	if err == nil {
		err = errors.Join(w.Write(&runtime.Exchange{Kind: runtime.ExchangeHost, Plugin: "weather", HostCalls: []runtime.HostCall{{Service: "state", Method: "get"}}}), w.Close())
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := record.NewReader(f)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if x := e.Exchange; x != nil {
			fmt.Println(e.Line, x.Kind, x.Plugin, x.HostCalls[0].Service)
		}
	}
	// Output: 2 host weather state
}
