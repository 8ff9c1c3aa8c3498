package gemini_test

import (
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/gemini"
)

// A host makes a cache once and names it in later requests, as long as the key
// is the same.
func ExampleBuild() {
	out, err := compiler.Compile(compiler.Input{
		Host:  compiler.HostTexts{Identity: "You are a test.", Safety: "Be careful."},
		Facts: compiler.Facts{Date: "2026-02-03"},
	})
	if err != nil {
		panic(err)
	}
	r := providers.Request{
		Model: "gemini-3.5-flash", Prompt: out.Prompt,
		Turn: []history.Entry{{Role: history.RoleUser, Text: "Hello."}},
	}
	key, config, err := gemini.NewCache(r, time.Hour)
	if err != nil {
		panic(err)
	}
	fmt.Printf("cached: %q\n", config.SystemInstruction.Parts[0].Text)

	// config goes to the SDK's client.Caches.Create, which returns the name.
	built, err := gemini.Build(r, gemini.Options{Cache: gemini.Handle{Name: "cachedContents/one", Key: key}})
	if err != nil {
		panic(err)
	}
	for _, part := range built.Contents[0].Parts {
		fmt.Printf("sent: %q\n", part.Text)
	}
	// Output:
	// cached: "## Identity\n\nYou are a test.\n\n## Safety\n\nBe careful."
	// sent: "## Extra System\n\nDate: 2026-02-03"
	// sent: "Hello."
}
