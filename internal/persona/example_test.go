package persona_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/persona"
)

// A host prepares the directory once and reads it before each turn.
func Example() {
	dir, err := os.MkdirTemp("", "home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	created, _, err := persona.Seed(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range created {
		fmt.Println("created", filepath.Base(path))
	}
	// The assistant empties its soul; that is its right.
	if err := os.Truncate(created[0], 0); err != nil {
		fmt.Println(err)
		return
	}
	files := persona.Load(dir)
	for _, f := range files.All() {
		fmt.Println(f.Row.Path, f.Row.Status, f.Text != "")
	}
	// Output:
	// created SOUL.md
	// created IDENTITY.md
	// SOUL.md loaded false
	// IDENTITY.md loaded true
	// USER.md missing false
}
