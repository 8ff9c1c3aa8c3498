package secret_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/secret"
)

func ExampleScanner_Find() {
	scanner := secret.New()
	for _, fact := range []string{
		"The wifi password is hunter2.",
		"The password is in the safe.",
	} {
		for _, f := range scanner.Find(fact) {
			fmt.Println("refused:", f.Pattern, f.Start, f.End)
		}
	}
	// Output:
	// refused: password-said 21 29
}
