package tree_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/tree"
)

func ExampleNormalize() {
	content, err := tree.Normalize("\ufeffBe brief.\r\n")
	fmt.Printf("%q %v %s\n", content, err, tree.StatusOf(content))

	_, err = tree.Normalize("a\x00b")
	fmt.Println(tree.HasCode(err, tree.CodeInvalid), err)
	// Output:
	// "Be brief.\n" <nil> active
	// true content: a NUL character at byte 1
}
