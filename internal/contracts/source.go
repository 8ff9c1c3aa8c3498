package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// source is where the events of one host stand.
type source struct {
	host, pkg string
	suffix    string // of the versions for this system, if they are versions of one package
	// files are those to read, below the package; run is a program there which prints the contract instead, or writes it to
	// the file out.
	files string
	run   []string
	out   string
	what  string // for people
	names func(text []byte) []string
}

//nolint:gochecknoglobals // an immutable table
var sources = []source{
	{host: "claude-code", pkg: "@anthropic-ai/claude-agent-sdk", files: "sdk.d.ts", what: "HOOK_EVENTS in sdk.d.ts", names: claudeNames},
	{
		host: "codex", pkg: "@openai/codex", suffix: "-" + system(), files: "vendor/*/bin/codex*", run: []string{"app-server", "generate-json-schema", "--out", "."},
		out: "v2/HooksListResponse.json", what: "HookEventName of codex app-server generate-json-schema", names: codexNames,
	},
	{host: "gemini", pkg: "@google/gemini-cli-core", files: "dist/src/hooks/types.d.ts", what: "HookEventName in hooks/types.d.ts", names: geminiNames},
	{host: "copilot", pkg: "@github/copilot-sdk", files: "dist/types.d.ts", what: "SessionHooks in types.d.ts", names: copilotNames},
	{host: "cursor", pkg: "@cursor/sdk", files: "dist/cjs/*.js", what: "the table of hooks in dist/cjs", names: cursorNames},
	{host: "opencode", pkg: "@opencode-ai/plugin", files: "dist/index.d.ts", what: "Hooks in index.d.ts", names: opencodeNames},
	{
		host: "amp", pkg: "@ampcode/cli-" + system(), files: "amp*", run: []string{"plugins", "show-docs"},
		what: "PluginEventMap of amp plugins show-docs", names: ampNames,
	},
}

// system is this system as packages name it.
func system() string {
	os := map[string]string{"windows": "win32"}[runtime.GOOS]
	if os == "" {
		os = runtime.GOOS
	}
	return os + "-" + strings.NewReplacer("amd64", "x64").Replace(runtime.GOARCH)
}

// fetch gets the newest version of the package, and reads its events.
func (s *source) fetch(ctx context.Context, dir string) (*Contract, error) {
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o700); err != nil {
		return nil, err
	}
	found, err := command(ctx, dir, "npm", "view", s.pkg, "version")
	if err != nil {
		return nil, err
	}
	version := strings.TrimSpace(string(found))
	packed, err := command(ctx, dir, "npm", "pack", "--silent", s.pkg+"@"+version+s.suffix)
	if err != nil {
		return nil, err
	}
	if _, err := command(ctx, dir, "tar", "-xzf", strings.TrimSpace(string(packed))); err != nil {
		return nil, err
	}
	text, err := s.read(ctx, dir)
	if err != nil {
		return nil, err
	}
	names := s.names(text)
	if len(names) == 0 {
		return nil, errors.New("no events were found: " + s.what + " looks different now")
	}
	return &Contract{Host: s.host, Package: strings.TrimSuffix(s.pkg, "-"+system()), Version: version, Source: s.what, Events: names}, nil
}

// read is the text in which the events stand.
func (s *source) read(ctx context.Context, dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "package", filepath.FromSlash(s.files)))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the package has no %s", s.files)
	}
	if err != nil {
		return nil, err
	}
	if s.run != nil {
		files[0], err = filepath.Abs(files[0])
		if err != nil {
			return nil, err
		}
		out, err := command(ctx, dir, files[0], s.run...)
		if err != nil || s.out == "" {
			return out, err
		}
		files = []string{filepath.Join(dir, filepath.FromSlash(s.out))}
	}
	var all bytes.Buffer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(data)
		all.WriteByte('\n')
	}
	return all.Bytes(), nil
}

// command runs a program in a directory. A program of an agent gets a home of its own, npm the user's, with its cache.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // npm, tar, and what a vendor ships
	cmd.Dir = dir
	if filepath.IsAbs(name) {
		cmd.Env = []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, errs.Bytes())
	}
	return out, nil
}

// all are what the expression finds between two texts, sorted.
func all(text []byte, from, to, expression string) []string {
	_, rest, found := bytes.Cut(text, []byte(from))
	if !found {
		return nil
	}
	body, _, _ := bytes.Cut(rest, []byte(to))
	var names []string
	for _, m := range regexp.MustCompile(expression).FindAllSubmatch(body, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func claudeNames(text []byte) []string {
	return all(text, "HOOK_EVENTS: readonly [", "]", `['"](\w+)['"]`)
}

func geminiNames(text []byte) []string { return all(text, "enum HookEventName {", "}", `= "(\w+)"`) }

func ampNames(text []byte) []string {
	return all(text, "interface PluginEventMap {", "}", `'([\w.]+)':`)
}

func opencodeNames(text []byte) []string {
	return all(text, "interface Hooks {", "\n}", `(?m)^ {4}"?([\w.]+)"?\??:`)
}

// copilotNames are the names in Pascal case, by which hooks get payloads that name their event. Two events have other names
// there, and one has none.
func copilotNames(text []byte) []string {
	names := all(text, "interface SessionHooks {", "\n}", `(?m)^\s*on(\w+)\?:`)
	for i, name := range names {
		switch name {
		case "UserPromptSubmitted":
			names[i] = "UserPromptSubmit"
		case "AgentStop":
			names[i] = "Stop"
		case "UserPromptTransformed":
			names[i] = "userPromptTransformed"
		}
	}
	slices.Sort(names)
	return names
}

func cursorNames(text []byte) []string {
	return all(text, `={beforeShellExecution:`, "}", `"(\w+)"`)
}

// codexNames are the names in Pascal case, as hooks and payloads have them.
func codexNames(text []byte) []string {
	var schema struct {
		Definitions struct {
			Names struct {
				Enum []string `json:"enum"`
			} `json:"HookEventName"`
		} `json:"definitions"`
	}
	if json.Unmarshal(text, &schema) != nil {
		return nil
	}
	names := schema.Definitions.Names.Enum
	for i, name := range names {
		names[i] = string(unicode.ToUpper(rune(name[0]))) + name[1:]
	}
	slices.Sort(names)
	return names
}
