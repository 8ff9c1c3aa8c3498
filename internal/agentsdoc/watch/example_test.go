package watch_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/watch"
)

func Example() {
	dir, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	trace := watch.NewTrace(chain.OS{})
	chain.Resolve(trace, dir, chain.Options{})

	told := make(chan []string, 1)
	w := watch.New(watch.Options{Changed: func(ids []string) { told <- ids }})
	defer w.Close()
	if err := w.Watch("session", trace.Seen()); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Be brief.\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-told, trace.Seen().Changed(chain.OS{}))
	// Output:
	// [session] true
}
