package advice_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/advice"
)

func Example() {
	const user = "I moved to Graz. What is the weather?"
	request := advice.Extraction(user, "Sunny.")
	fmt.Println(request.Input)

	answer := &phases.CompletionResponse{Text: `{"facts": [
		{"category": "fact", "text": "I moved to Graz", "evidence": "I moved to Graz", "slot": "home"},
		{"category": "fact", "text": "It is sunny", "evidence": "Sunny"}]}`}
	facts, unfounded, err := advice.Facts(answer, user)
	fmt.Println(facts[0].Text, facts[0].Slot, unfounded, err)
	// Output:
	// {"assistant":"Sunny.","user":"I moved to Graz. What is the weather?"}
	// I moved to Graz home 1 <nil>
}
