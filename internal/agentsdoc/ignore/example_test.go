package ignore_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/ignore"
)

func ExampleWay() {
	var w ignore.Way
	w.Add("dist/\n*.cache\n")
	for _, name := range []string{"src", "x.cache"} {
		w.Enter(name)
		fmt.Println(name, w.Ignored())
	}
	// Output:
	// src false
	// x.cache true
}
