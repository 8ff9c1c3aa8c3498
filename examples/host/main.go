// Host is an agent host in one file: it embeds the engine, runs three turns against a model that only pretends, and
// shows what reached that model and why. Run it in any directory of a source tree with AGENTS.md files:
//
//	go run ./examples/host --dir .
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// configuration is what a host ships, or reads from its operator's file: two
// first-party plugins, each a process of its own, with their grants.
const configuration = `
version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], read: ['*']}
    env: {pass: [HOME, XDG_CONFIG_HOME]}
  - name: house
    builtin: scripted
    grants: {contribute: [decision, prompt_section], sections: [house_rules]}
    config:
      hooks:
        - id: rules
          phase: turn.pre_prompt_compile
          respond: [{kind: prompt_section, section_id: house_rules, title: House Rules, content: "Be brief."}]
        - id: guard
          phase: tool.pre_call
          role: validate
          when: 'tool.name == "shell"'
          respond: [{kind: decision, verdict: deny, reason: "no shell here", reason_code: house}]
`

func shipped() serve.Plugins { return serve.Plugins{agentsdoc.New, scripted.New} }

func main() {
	serve.Builtins(shipped()...) // does not return in a plugin's process
	dir := flag.String("dir", ".", "working directory of the turns")
	flag.Parse()
	abs, err := filepath.Abs(*dir) // plugins have working directories of their own
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = host(ctx, abs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// host starts the engine, runs the turns, and ends the engine: after that no plugin process is left.
func host(ctx context.Context, dir string) error {
	cfg, err := config.Parse([]byte(configuration), "host")
	if err != nil {
		return err
	}
	launches, err := shipped().Launches()
	if err != nil {
		return err
	}
	eng, err := runtime.New(ctx, cfg, runtime.Options{Builtins: launches})
	if err != nil {
		return err
	}
	return errors.Join(turns(ctx, eng, dir), eng.Close(context.WithoutCancel(ctx)))
}

func turns(ctx context.Context, eng *runtime.Engine, dir string) error {
	for i, message := range []string{"What are the rules here?", "List the files.", "Thank you."} {
		t := phases.Context{WorkspaceID: "demo", ThreadID: "demo", TurnID: strconv.Itoa(i + 1), Mode: phases.ModeAgent, Dir: dir}
		if err := turn(ctx, eng, t, message); err != nil {
			return err
		}
	}
	return nil
}

// turn is the host's loop: begin, ask the model until it calls no more tools, end.
func turn(ctx context.Context, eng *runtime.Engine, where phases.Context, message string) (err error) {
	t, err := loop.Begin(ctx, eng, where, loop.Options{
		Input: runtime.CompileInput{UserText: message, ToolCalling: true}, Tools: []loop.Tool{shell()}, MaxResultChars: 4000,
	})
	if refused, ok := errors.AsType[*loop.Refused](err); ok {
		fmt.Println("  host:", refused)
		return nil
	}
	if err != nil {
		return err
	}
	answer := ""
	defer func() { err = t.Done(ctx, answer, err) }()
	talk := []string{message}
	for {
		p, err := t.Prompt(ctx)
		if err != nil {
			return err
		}
		show(p)
		reply := model(p, append(talk, p.Reminders...))
		if err := t.Used(ctx, reply.usage); err != nil {
			return err
		}
		if answer = reply.text; len(reply.calls) == 0 {
			fmt.Println("  model:", answer)
			reason, err := t.GoOn(ctx, answer) // a plugin may want more of the model
			if err != nil || reason == "" {
				return err
			}
			talk = append(talk, answer, reason)
		}
		for _, call := range reply.calls {
			result, err := t.Tool(ctx, call)
			if err != nil {
				return err
			}
			fmt.Printf("  tool %s: %s\n", call.Tool, result.Text)
			talk = append(talk, result.Text)
		}
	}
}

// shell is a tool of the host's own.
func shell() loop.Tool {
	return loop.Tool{
		Tool: phases.Tool{Name: "shell", Description: "Runs a command.", InputSchema: json.RawMessage(`{"type": "object", "properties": {"command": {"type": "string"}}}`)},
		Call: func(_ context.Context, arguments json.RawMessage) (string, error) {
			return fmt.Sprintf("I would run %s now.", arguments), nil
		},
	}
}

func show(p *loop.Prompt) {
	m := p.Manifest
	fmt.Printf("turn %s, round %d: %d sections, %d characters, %d tools, %s\n", m.TurnID, m.Round, len(m.Sections), len([]rune(p.FullText)), len(p.Tools), m.FingerprintFull)
	for _, s := range m.Sections {
		fmt.Printf("  %-16s %-9s from %s\n", s.SectionID, s.Stability, s.Owner)
	}
}

type reply struct {
	text  string
	calls []loop.Call
	usage phases.Usage
}

// model pretends: a real host sends the prompt, its tools and the talk to its provider here.
func model(p *loop.Prompt, talk []string) reply {
	read := len([]rune(p.FullText + strings.Join(talk, "")))
	r := reply{usage: phases.Usage{InputTokens: read / 4, OutputTokens: 10}}
	switch last := talk[len(talk)-1]; {
	case last == "List the files.":
		r.calls = []loop.Call{{ID: "call-1", Tool: "shell", Arguments: json.RawMessage(`{"command": "ls"}`)}}
	case strings.HasPrefix(last, "<system-reminder"):
		r.text = "I may not do that."
	default:
		r.text = fmt.Sprintf("I read %d characters of instructions.", len([]rune(p.FullText)))
	}
	return r
}
