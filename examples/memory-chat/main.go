// Memory-chat is an agent host with a memory. It holds two talks of five turns with a model that only pretends, the
// second one with a new engine and new plugin processes, and shows for each turn what the memory may do in it, which
// memories are in the prompt and which hook brought them, as the manifest says, and what was stored.
//
//	go -C examples/memory-chat run . --data ./memories
//
// Run it again with the same directory: the first question has an answer then. Without
// --data everything is removed at the end.
//
// The plugin's rules read what the user wishes of the memory and what is worth remembering, or a model does, on any
// server of the OpenAI Chat Completions API, whose key is taken from OPENAI_API_KEY:
//
//	go -C examples/memory-chat run . --model http://localhost:8000/v1 --model-name qwen3
//
// Start reading at [chat.turn], in chat.go, which also has what the user says; the model that pretends in model.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/providers/openai"
	"github.com/grapnelhq/grapnel/runtime"
)

// configuration is what a host ships, or reads from its operator's file: the memory, with everything it needs. The
// phases have more time than usual, for a model that reads wishes, and for a busy machine.
const configuration = `
version: 1
budgets:
  turn: {time: 60s}
  phases:
    turn.pre_policy: {time: 10s}
    turn.pre_prompt_context: {time: 10s}
    turn.post_preflight_prompt_context: {time: 10s}
    turn.pre_tool_materialization: {time: 10s}
    turn.pre_prompt_compile: {time: 10s}
plugins:
  - name: memory
    builtin: memory
    grants:
      contribute: [policy, prompt_context, tool_bundle, prompt_section, audit]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: [memory_search, memory_list, memory_get, memory_remember, memory_forget]
      see: [user_text, assistant_text, status, tool_events, recall_plan, tool_calling, available_tools, policy, context, metadata]
      host: [model.complete]
    subscriptions:
      memory.policy: {timeout: 10s}
      memory.recall: {timeout: 10s}
      memory.active_recall: {timeout: 10s}
      memory.tools: {timeout: 10s}
      memory.prompt: {timeout: 10s}
    config: {dsn: '${MEMORY_DSN}', classifier: '${MEMORY_READER}', extraction: '${MEMORY_READER}'}
`

type options struct {
	data             string
	model, modelName string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("memory-chat", flag.ContinueOnError)
	f.StringVar(&o.data, "data", "", "directory of the memory (default: one that is removed at the end)")
	f.StringVar(&o.model, "model", "", "base URL of a server of models that reads wishes and facts (default: the plugin's rules)")
	f.StringVar(&o.modelName, "model-name", "gpt-5-mini", "the model there")
	err := f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("memory-chat takes no arguments, and %q is one", f.Arg(0))
		fmt.Fprintln(os.Stderr, err)
	}
	return o, err
}

func shipped() builtin.Plugins { return builtin.Plugins{memory.New} }

func main() {
	builtin.Main(shipped()...) // does not return in a plugin's process
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // the flags have reported why
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory-chat:", err)
		os.Exit(1)
	}
}

// run holds the talks, each with an engine and plugin processes of its own. They share the directory.
func run(ctx context.Context, o options) (err error) {
	if o.data == "" {
		if o.data, err = os.MkdirTemp("", "grapnel-memory-chat-"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(o.data) }()
	}
	if o.data, err = filepath.Abs(o.data); err != nil { // plugins have working directories of their own
		return err
	}
	begun := time.Now().UnixNano()
	talks := script()
	for i, t := range talks {
		fmt.Printf("── %s ──\n\n", t.name)
		if err := o.talk(ctx, t, fmt.Sprintf("%s-%d", t.name, begun), i == len(talks)-1); err != nil {
			return err
		}
	}
	return nil
}

func (o options) talk(ctx context.Context, t talk, thread string, last bool) error {
	seen := &events{}
	eng, err := o.start(ctx, seen)
	if err != nil {
		return err
	}
	c := &chat{engine: eng, events: seen}
	err = c.hold(ctx, t, thread)
	if err == nil && last {
		err = showAll(ctx, eng)
	}
	return errors.Join(err, eng.Close(context.WithoutCancel(ctx)))
}

func (o options) start(ctx context.Context, seen *events) (*runtime.Engine, error) {
	launches, err := shipped().Launches()
	if err != nil {
		return nil, err
	}
	// What operators would read in a log, this program shows: see note.
	opts := runtime.Options{Builtins: launches, OnEvent: seen.note, Logger: slog.New(slog.DiscardHandler)}
	values := map[string]string{"MEMORY_DSN": "sqlite:" + filepath.Join(o.data, "memory.db"), "MEMORY_READER": "rules"}
	if o.model != "" {
		values["MEMORY_READER"] = "model"
		asks, err := openai.NewCompleter(openai.CompleterOptions{BaseURL: o.model, APIKey: os.Getenv("OPENAI_API_KEY"), Model: o.modelName})
		if err != nil {
			return nil, err
		}
		opts.Complete = asks.Complete
	}
	cfg, err := config.Loader{LookupEnv: func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}}.Parse([]byte(configuration), "memory-chat")
	if err != nil {
		return nil, err
	}
	return runtime.New(ctx, cfg, opts)
}
