// Example is a proxy before an API of a model:
//
//	go run ./example --config grapnel.yaml --upstream https://api.openai.com
//	OPENAI_BASE_URL=http://127.0.0.1:8787/v1 your-agent
//
// Without --upstream it stands before a fake API, whose model repeats its instructions, so that it needs no key and no
// network; without --config it has one plugin, which adds a rule.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"time"

	"github.com/grapnelhq/grapnel/adapters/openaihttp"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

const configuration = `
version: 1
plugins:
  - name: house
    builtin: scripted
    grants: {contribute: [prompt_section], stable_sections: [house_rules]}
    config:
      hooks:
        - id: rules
          phase: turn.pre_prompt_compile
          respond: [{kind: prompt_section, section_id: house_rules, title: House Rules, stability: stable, content: "Be brief."}]
`

func shipped() serve.Plugins { return serve.Plugins{agentsdoc.New, scripted.New} }

func main() {
	serve.Builtins(shipped()...) // does not return in a plugin's process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet("example", flag.ContinueOnError)
	listen := f.String("listen", "127.0.0.1:8787", "where to listen")
	upstream := f.String("upstream", "", "the API, such as https://api.openai.com or https://api.anthropic.com (default: a fake one)")
	file := f.String("config", "", "the plugins (default: one that adds a rule)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *upstream == "" {
		fake := httptest.NewServer(http.HandlerFunc(repeat))
		defer fake.Close()
		*upstream = fake.URL
	}
	api, err := url.Parse(*upstream)
	if err != nil {
		return err
	}
	eng, err := engine(ctx, *file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close(context.WithoutCancel(ctx))) }()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	proxy, err := openaihttp.New(openaihttp.Options{Engine: eng, Upstream: api, Logger: log})
	if err != nil {
		return err
	}
	defer proxy.Close(context.WithoutCancel(ctx))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func engine(ctx context.Context, file string) (*runtime.Engine, error) {
	launches, err := shipped().Launches()
	if err != nil {
		return nil, err
	}
	o := runtime.Options{Builtins: launches}
	if file != "" {
		return runtime.Load(ctx, file, o)
	}
	cfg, err := config.Parse([]byte(configuration), "example")
	if err != nil {
		return nil, err
	}
	return runtime.New(ctx, cfg, o)
}

// repeat is a model of Chat Completions that says what its system prompt is.
func repeat(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "want messages", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	content, err := json.Marshal(request.Messages[0].Content)
	if err != nil {
		http.Error(w, "the text cannot be written", http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, content)
}
