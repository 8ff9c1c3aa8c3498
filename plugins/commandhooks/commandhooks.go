// Package commandhooks is the plugin that runs command hooks which people have for other agents: the scripts of a
// .claude/settings.json, .codex/hooks.json, .gemini/settings.json, .cursor/hooks.json or .github/hooks/*.json. Each
// script is a subscription (of a prompt and a session, one for each phase that it needs) with its own row in the ledger,
// timeout, breaker and shadow.
//
// A script runs as its agent runs it: by a shell or as a program, in the session's directory, with the payload on its
// standard input. Package internal/agents/scripts has the rules of each agent; this one starts processes. One difference is
// deliberate: a script that crashes, is missing, takes too long or answers nonsense has failed, and the failure policy of
// its subscription says what follows, so that a broken guard denies. "as_host" has the agents' own rules instead.
//
// Start reading at [New]. A script's process is a child of the plugin's, in whatever sandbox the operator gives that.
//
// Stability: experimental until 1.0.
package commandhooks

import (
	"context"
	_ "embed" // for the schema
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/internal/procgroup"
	"github.com/grapnelhq/grapnel/sdk"
)

// configSchema is the JSON Schema of [config].
//
//go:embed schema.json
var configSchema []byte

// config is the operator's configuration; schema.json describes each key.
type config struct {
	Format   string            `json:"format"`
	Files    []string          `json:"files"`
	AsHost   bool              `json:"as_host"`
	Rewrites []string          `json:"rewrites"`
	Skip     []string          `json:"skip"`
	Tools    map[string]string `json:"tools"`
}

// maxFile bounds a hooks file.
const maxFile = 1 << 20

// New returns the plugin. It reads the files of its configuration and starts the programs that they name.
func New() *sdk.Plugin {
	var transcript string
	return &sdk.Plugin{
		Name:         "commandhooks",
		Version:      "0.1.0",
		Doc:          "Runs the command hooks that people have for other agents.",
		ConfigSchema: configSchema,
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			var cfg config
			if err := sdk.DecodeConfig(c.Config, &cfg); err != nil {
				return sdk.Setup{}, err
			}
			p, err := configure(&cfg)
			if err != nil {
				return sdk.Setup{}, err
			}
			transcript = p.transcript
			return sdk.Setup{Hooks: p.hooks()}, nil
		},
		OnClose: func(context.Context) error {
			_ = os.Remove(transcript) // a script may have removed it
			return nil
		},
	}
}

func configure(cfg *config) (*plugin, error) {
	if !procgroup.Supported {
		return nil, sdk.ConfigErrorf("", "commands of other agents are run on Unix systems only")
	}
	p := &plugin{config: *cfg, kept: recent.New[[]string](maxKept)}
	var skipped []scripts.Skipped
	for i, name := range cfg.Files {
		file, err := readFile(cfg.Format, name)
		if err != nil {
			return nil, sdk.ConfigErrorf("/files/"+strconv.Itoa(i), "%v", err)
		}
		p.add(file.Hooks)
		skipped = append(skipped, file.Skipped...)
	}
	if err := cfg.check(p.handlers, skipped); err != nil {
		return nil, err
	}
	if err := p.makeTranscript(); err != nil {
		return nil, err
	}
	return p, nil
}

// readFile reads a hooks file that only its owner can change: whoever can change it chooses what runs.
func readFile(format, name string) (*scripts.File, error) {
	home := os.Getenv("HOME")
	path := name
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home == "" {
			return nil, fmt.Errorf("%s needs the variable HOME: add env: {pass: [HOME]}", name)
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s is neither an absolute path nor one below ~/", name)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a file of at most 1 MiB", path)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%s may be changed by others, who would choose what runs; see: chmod go-w %s", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return scripts.Read(format, path, home, data)
}

// check makes sure that no guard is left out without anybody knowing, and that the lists name hooks that there are.
func (c *config) check(handlers []agent.Hook, skipped []scripts.Skipped) error {
	for i, name := range c.Rewrites {
		if !slices.ContainsFunc(handlers, func(h agent.Hook) bool { return h.ID == name && h.Step == agent.StepToolCall }) {
			return sdk.ConfigErrorf("/rewrites/"+strconv.Itoa(i), "%q is not a hook of the files that runs before a tool call; grapnel hooks import lists them", name)
		}
	}
	for i, name := range c.Skip {
		known := slices.ContainsFunc(handlers, func(h agent.Hook) bool { return h.ID == name }) ||
			slices.ContainsFunc(skipped, func(s scripts.Skipped) bool { return s.ID == name })
		if !known {
			return sdk.ConfigErrorf("/skip/"+strconv.Itoa(i), "%q is not a hook of the files; grapnel hooks import lists them", name)
		}
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil)) // the host reads a plugin's standard error
	for _, s := range skipped {
		if s.Decides && !slices.Contains(c.Skip, s.ID) {
			return sdk.ConfigErrorf("/files", "the %s hook %.120q could forbid something and cannot be run: %s. Write skip: [%s] if that is fine", s.Event, s.What, s.Why, s.ID)
		}
		log.Warn("a hook is not run", "event", s.Event, "hook", s.What, "why", s.Why)
	}
	return nil
}

// add takes the handlers of a file. Agents run a handler that stands in several files once.
func (p *plugin) add(handlers []agent.Hook) {
	for i := range handlers {
		h := &handlers[i]
		h.AsHost = p.config.AsHost
		if slices.Contains(p.config.Skip, h.ID) {
			continue
		}
		same := func(o agent.Hook) bool {
			return o.Event == h.Event && o.Matcher == h.Matcher && o.If == h.If && o.Command == h.Command && slices.Equal(o.Args, h.Args) && o.Project == h.Project
		}
		if slices.ContainsFunc(p.handlers, same) {
			continue
		}
		base := h.ID
		for n := 2; slices.ContainsFunc(p.handlers, func(o agent.Hook) bool { return o.ID == h.ID }); n++ {
			h.ID = fmt.Sprintf("%s-%d", base, n)
		}
		p.handlers = append(p.handlers, *h)
	}
}

// makeTranscript makes the empty file that scripts of some agents may open as the conversation's.
func (p *plugin) makeTranscript() error {
	file, err := os.CreateTemp("", "transcript-*.jsonl")
	if err != nil {
		return fmt.Errorf("a file that stands for the transcript: %w", err)
	}
	p.transcript = file.Name()
	return file.Close()
}
