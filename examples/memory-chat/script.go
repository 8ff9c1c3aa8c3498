package main

import "github.com/grapnelhq/grapnel/phases"

// talk is some turns of one thread, in one run of the engine and its plugins.
type talk struct {
	name  string
	lines []line
}

// line is what the user says in one turn.
type line struct {
	text string
	// mode is the turn's; empty is agent.
	mode phases.Mode
	// plan are the queries of the host's own plan for what to recall. A real host
	// lets a small model make one when the user's words alone find too little.
	plan []string
}

// script is the user's side of the example: ten turns in two talks.
func script() []talk {
	return []talk{
		{"monday", []line{
			{text: "Where do I live?"},
			{text: "I live in Lisbon. I prefer tabs over spaces."},
			{text: "Remember that our database is PostgreSQL 17."},
			{text: "Remember that my password is hunter2-Tr0ub4dor."},
			{text: "I am allergic to peanuts. Don't save this."},
		}},
		{"tuesday", []line{
			{text: "Help me with my talk.", plan: []string{"which database do we use", "where does the user live"}},
			{text: "I moved. I live in Porto now."},
			{text: "Don't use memory for this: where do I live?"},
			{text: "Forget that I prefer tabs."},
			{text: "Where do I live?", mode: phases.ModeChat},
		}},
	}
}
