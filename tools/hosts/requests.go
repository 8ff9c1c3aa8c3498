package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
)

// unseen are the members of requests that the hooks of some agent do not show: the table in docs/BRIDGES.md has them.
var unseen = []string{"tools", "systemInstruction", "functionResponse", "functionCall", "client_metadata", "metadata"} //nolint:gochecknoglobals // immutable

// codexBase begins Codex's base instructions, of which it leaves out what is about tools that it does not offer: the record has them whole.
const codexBase = "You are a coding agent"

// compareSent looks for all other texts of the requests that the model got in the record, which has their hashes with owners.
func (t *trial) compareSent(ctx context.Context) error {
	record, err := t.grapnel(ctx, "manifest", "export")
	if err != nil {
		return err
	}
	var lost []string
	requests := 0
	for _, body := range t.model.bodies {
		if !strings.Contains(body, `"tools":`) {
			continue // it is for a title
		}
		var request any
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			return err
		}
		requests++
		for _, text := range sentTexts(request) {
			if !strings.HasPrefix(text, codexBase) && !strings.Contains(string(record), manifest.Hash(text, nil)) {
				lost = append(lost, text[:min(len(text), 60)])
			}
		}
	}
	observed := strings.Count(string(record), `"observed":"`+t.agent.name)
	if len(lost) > 0 || observed != requests || requests == 0 {
		return fmt.Errorf("%d of %d requests are on record, without the texts %q", observed, requests, lost)
	}
	return nil
}

// sentTexts are the texts in a value, without what nobody sees.
func sentTexts(v any) (texts []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			texts = append(texts, sentTexts(e)...)
		}
	case map[string]any:
		for name, e := range v {
			text, is := e.(string)
			switch {
			case slices.Contains(unseen, name):
			case !is:
				texts = append(texts, sentTexts(e)...)
			case name == "text" || name == "content" || name == "output" || name == "instructions":
				texts = append(texts, text)
			}
		}
	}
	return texts
}
