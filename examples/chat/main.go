// Chat is an agent host in a few files: it holds a conversation with a model of Anthropic's, OpenAI's or Google's,
// lets it call tools, keeps a manifest of each prompt in a SQLite file, and at the end shows from that file how much
// of each prompt came out of the provider's cache, and which section broke it.
//
//	go -C examples/chat run . --dir ../..
//	go -C examples/chat run . --provider openai --fake=false "What are the rules here?"
//
// Without arguments it asks four questions. The model is a fake one on the loopback; with --fake=false it is the real
// one, whose key the SDK takes from the environment.
//
// Start reading at [chat.turn], in chat.go. The SDKs are in model.go, the plugin that this host brings along is in
// desk.go, the fake model in fake.go and shapes.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
	"github.com/grapnelhq/grapnel/store"
)

// configuration is what a host ships, or reads from its operator's file. The plugin desk runs inside this program.
const configuration = `
version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], read: ['*']}
    env: {pass: [HOME, XDG_CONFIG_HOME]}
  - name: house
    builtin: scripted
    grants: {contribute: [prompt_section], stable_sections: [house_rules]}
    config:
      hooks:
        - id: rules
          phase: turn.pre_prompt_compile
          respond: [{kind: prompt_section, section_id: house_rules, title: House Rules, stability: stable, content: "Be brief."}]
  - name: desk
    grants: {contribute: [prompt_section, tool_bundle], sections: [memory_recall], tools: [add]}
`

type options struct {
	provider, model  string
	fake             bool
	dir, store       string
	order            string
	behind           string // section ids, with commas
	context, reserve int    // tokens
	messages         []string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("chat", flag.ContinueOnError)
	f.StringVar(&o.provider, "provider", "anthropic", "anthropic, openai or gemini")
	f.StringVar(&o.model, "model", "", "the model (default: one of the provider's)")
	f.BoolVar(&o.fake, "fake", true, "talk to a fake model on the loopback")
	f.StringVar(&o.dir, "dir", ".", "working directory of the turns")
	f.StringVar(&o.store, "store", "", "the SQLite file for manifests (default: one that is removed at the end)")
	f.StringVar(&o.order, "order", string(compiler.OrderCache), "order of the dynamic sections: reference or cache")
	f.StringVar(&o.behind, "behind", "", "sections to send behind the conversation, with commas, such as memory_recall")
	f.IntVar(&o.context, "context", 100_000, "tokens of the model's context")
	f.IntVar(&o.reserve, "reserve", 4_000, "tokens kept free for the answer")
	err := f.Parse(args)
	o.messages = f.Args()
	if len(o.messages) == 0 {
		o.messages = []string{"What are the rules here?", "What is 17 plus 25?", "And 3 plus 4?", "Thank you."}
	}
	return o, err
}

func shipped() serve.Plugins { return serve.Plugins{agentsdoc.New, scripted.New} }

func main() {
	serve.Builtins(shipped()...) // does not return in a plugin's process
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
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.dir, err = filepath.Abs(o.dir); err != nil { // plugins have working directories of their own
		return err
	}
	if o.store == "" {
		dir, err := os.MkdirTemp("", "grapnel-chat-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.store = filepath.Join(dir, "manifests.db")
	}
	log, err := store.Open(ctx, "sqlite:"+o.store, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	counter, err := history.NewCounter(history.CounterOptions{Encoding: history.EncodingFor(o.model)})
	if err != nil {
		return err
	}
	m, end, err := connect(ctx, o, counter.Count)
	if err != nil {
		return err
	}
	defer end()
	eng, err := engine(ctx, log, counter)
	if err != nil {
		return err
	}
	c := &chat{options: o, engine: eng, model: m, count: counter.Count, tokens: history.NewEstimator(m.name)}
	err = errors.Join(c.session(ctx), eng.Close(context.WithoutCancel(ctx)))
	return errors.Join(err, table(ctx, log, os.Stdout))
}

// engine starts the plugins. Manifests go to the store, with predictions from the rules of the models' caches.
func engine(ctx context.Context, log *store.Store, counter *history.Counter) (*runtime.Engine, error) {
	cfg, err := config.Parse([]byte(configuration), "chat")
	if err != nil {
		return nil, err
	}
	launches, err := shipped().Launches()
	if err != nil {
		return nil, err
	}
	table, err := compiler.LoadCacheFacts()
	if err != nil {
		return nil, err
	}
	return runtime.New(ctx, cfg, runtime.Options{
		Builtins: launches, InProcess: map[string]runtime.Plugin{"desk": desk()},
		Sink: log, CacheRules: table.Rules, CountTokens: counter.Count, TokenizerName: string(counter.Encoding()),
	})
}

func table(ctx context.Context, log *store.Store, out io.Writer) error {
	list, err := log.Manifests(ctx, store.Filter{Workspace: "demo", Thread: "chat"})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "\nturn\tround\tprompt\tpredicted\tfrom cache\tbroken by"); err != nil {
		return err
	}
	for _, m := range list {
		if m.Kind != manifest.KindPrompt {
			continue
		}
		usage, err := log.Usage(ctx, m.ManifestID)
		if err != nil {
			return err
		}
		prompt, read := "-", "-"
		if n := len(usage); n > 0 {
			prompt, read = strconv.Itoa(usage[n-1].InputTokens), strconv.Itoa(usage[n-1].CacheReadTokens)
		}
		predicted := "-"
		if p := m.Cache.Predicted; p != nil {
			predicted = strconv.Itoa(*p)
		}
		if _, err := fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", m.TurnID, m.Round, prompt, predicted, read, broken(&m.Cache)); err != nil {
			return err
		}
	}
	return w.Flush()
}

func broken(c *manifest.Cache) string {
	if c.Cause == "" {
		return "-"
	}
	return fmt.Sprintf("%s of %s, %d tokens lost", c.Place(), c.Owner, c.TokensLost)
}
