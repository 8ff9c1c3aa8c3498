package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type view struct {
	prompt  string
	tools   []string
	message string
	results []result
}

type result struct {
	tool, text string
	failed     bool
}

type reply struct {
	text, tool string
	arguments  json.RawMessage
}

// model pretends: a real host sends the prompt to its provider here. It only knows the
// prompt and the tools' answers, so that its words show what went in.
func model(v view) (reply, error) {
	if len(v.results) > 0 {
		return afterwards(v)
	}
	switch {
	case strings.Contains(v.prompt, "call memory_remember") && slices.Contains(v.tools, "memory_remember"):
		return call("memory_remember", map[string]any{"text": wished(v.message, "Remember that ")})
	case strings.Contains(v.prompt, "Call memory_forget") && slices.Contains(v.tools, "memory_forget"):
		return call("memory_forget", map[string]any{"query": wished(v.message, "Forget that ")})
	}
	known := remembered(v.prompt)
	switch {
	case len(known) > 0:
		return reply{text: "I remember: " + strings.Join(known, "; ") + "."}, nil
	case strings.HasSuffix(v.message, "?"):
		return reply{text: "I do not know."}, nil
	}
	return reply{text: "All right."}, nil
}

func wished(message, words string) string {
	return strings.TrimSuffix(strings.TrimPrefix(message, words), ".")
}

func call(tool string, arguments map[string]any) (reply, error) {
	data, err := json.Marshal(arguments)
	return reply{tool: tool, arguments: data}, err
}

// remembered are the texts of the memories in a prompt. A line of one is "- (SCOPE, CATEGORY) TEXT".
func remembered(prompt string) (texts []string) {
	_, inside, _ := strings.Cut(prompt, "<MEMORIES>\n")
	inside, _, _ = strings.Cut(inside, "\n</MEMORIES>")
	for line := range strings.Lines(inside) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), ") "); ok && strings.HasPrefix(line, "- (") {
			texts = append(texts, text)
		}
	}
	return texts
}

func afterwards(v view) (reply, error) {
	last := v.results[len(v.results)-1]
	var answer struct {
		// Of a refusal.
		Error string `json:"error"`
		// Of memory_remember.
		Change string `json:"change"`
		// Of memory_forget, first what matches and then what is gone.
		Matches []struct {
			Text string `json:"text"`
		} `json:"matches"`
		Confirmation string `json:"confirmation"`
		Message      string `json:"message"`
		Count        int    `json:"count"`
	}
	if !json.Valid([]byte(last.text)) { // a failure is a plain text
		return reply{text: "The tool failed: " + last.text}, nil
	}
	if err := json.Unmarshal([]byte(last.text), &answer); err != nil {
		return reply{}, err
	}
	switch {
	case last.failed:
		return reply{text: "I may not do that: " + answer.Error}, nil
	case answer.Change == "known":
		return reply{text: "I know that already."}, nil
	case answer.Change != "":
		return reply{text: "I will remember that."}, nil
	case answer.Confirmation != "":
		// A careful model asks the user first when there is more than was asked for.
		return call("memory_forget", map[string]any{"query": wished(v.message, "Forget that "), "confirmation": answer.Confirmation})
	case answer.Message != "":
		return reply{text: answer.Message}, nil
	}
	return reply{text: fmt.Sprintf("I have forgotten %d.", answer.Count)}, nil
}
