package commandhook

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// signs are directories and words of files that only one agent has.
//
//nolint:gochecknoglobals // an immutable table
var signs = []struct {
	of          Format
	dirs, words []string
}{
	{Claude, []string{".claude"}, nil},
	{Codex, []string{".codex"}, nil},
	{Gemini, []string{".gemini"}, []string{"BeforeTool", "AfterTool", "BeforeAgent"}},
	{Cursor, []string{".cursor"}, nil},
	{Copilot, []string{".github", ".copilot"}, []string{"timeoutSec", "powershell", "agentStop", "userPromptSubmitted"}},
	{Cursor, nil, []string{"beforeSubmitPrompt", "beforeShellExecution", "afterFileEdit", "preToolUse"}}, // Copilot has the last one too
}

// Guess finds out which agent a file is for, by its place and by what only one of them writes.
func Guess(path string, data []byte) Format {
	in := filepath.ToSlash(path)
	for _, sign := range signs {
		if slices.ContainsFunc(sign.dirs, func(dir string) bool { return strings.Contains(in, "/"+dir+"/") }) {
			return sign.of
		}
	}
	for _, sign := range signs {
		if slices.ContainsFunc(sign.words, func(word string) bool { return bytes.Contains(data, []byte(strconv.Quote(word))) }) {
			return sign.of
		}
	}
	return Claude
}
