package handover_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/plugins/memory/handover"
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
)

func Example() {
	parcel := handover.Of(recall.Selection{Items: []recall.Recalled{{ID: "01J8Z", Scope: "user", Category: "fact", Text: "I live in Graz", Score: 1}}})
	content, err := parcel.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(content)
	got, err := handover.Decode(content)
	fmt.Println(got.Items[0].Text, err)
	// Output:
	// {"items":[{"id":"01J8Z","scope":"user","category":"fact","text":"I live in Graz","score":1}]}
	// I live in Graz <nil>
}
