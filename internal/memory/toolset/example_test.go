package toolset_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/memory/toolset"
)

func Example() {
	for _, tool := range toolset.Definitions(toolset.Allowed{Read: true}) {
		fmt.Println(tool.Name)
	}
	_, err := toolset.ParseSearch(json.RawMessage(`{"query":"tabs","limit":100}`))
	fmt.Println(err)
	// Output:
	// memory_search
	// memory_list
	// memory_get
	// limit is 100 and should be from 1 to 20
}
