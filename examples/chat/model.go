package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/anthropic"
	"github.com/grapnelhq/grapnel/providers/gemini"
	"github.com/grapnelhq/grapnel/providers/openai"
)

type model struct {
	provider, name string
	ask            ask
}

// connect makes the client of a provider: of the fake one, which end stops, or of
// the real one, whose key the SDK finds in the environment.
func connect(ctx context.Context, o options, count func(string) int) (m model, end func(), err error) {
	end, url := func() {}, ""
	if o.fake {
		f, err := newFake(o, count)
		if err != nil {
			return m, nil, err
		}
		end, url = f.server.Close, f.server.URL
	}
	m = model{provider: o.provider, name: cmp.Or(o.model, shapes()[o.provider].model)}
	switch o.provider {
	case compiler.Anthropic:
		m.ask = onAnthropic(url)
	case compiler.OpenAI:
		m.ask = onOpenAI(url)
	case compiler.Gemini:
		m.ask, err = onGemini(ctx, url)
	default:
		err = fmt.Errorf("there is no provider %q", o.provider)
	}
	if err != nil {
		end()
	}
	return m, end, err
}

type ask = func(ctx context.Context, r providers.Request) (answer, error)

// answer is what the model said, what it cost, and how the request differed from its prompt's record.
type answer struct {
	entry   history.Entry
	usage   phases.Usage
	changes []providers.Change
}

func onAnthropic(url string) ask {
	client := anthropicsdk.NewClient()
	if url != "" {
		client = anthropicsdk.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"))
	}
	return func(ctx context.Context, r providers.Request) (answer, error) {
		// A turn has several rounds here, and each finds the one before it.
		built, err := anthropic.Build(r, anthropic.Options{CacheConversation: true})
		if err != nil {
			return answer{}, err
		}
		message, err := client.Messages.New(ctx, built.Params)
		if err != nil {
			return answer{}, err
		}
		e, err := anthropic.Reply(message, built.Names)
		return answer{e, anthropic.Usage(message.Usage), built.Changes}, err
	}
}

func onOpenAI(url string) ask {
	client := openaisdk.NewClient()
	if url != "" {
		client = openaisdk.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"))
	}
	return func(ctx context.Context, r providers.Request) (answer, error) {
		built, err := openai.Build(r, openai.Options{})
		if err != nil {
			return answer{}, err
		}
		response, err := client.Responses.New(ctx, built.Params)
		if err != nil {
			return answer{}, err
		}
		e, err := openai.Reply(response, built.Names)
		return answer{e, openai.Usage(response.Usage), built.Changes}, err
	}
}

func onGemini(ctx context.Context, url string) (ask, error) {
	var c *genai.ClientConfig
	if url != "" {
		c = &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}}
	}
	client, err := genai.NewClient(ctx, c)
	calls := 0 // that came without an id
	return func(ctx context.Context, r providers.Request) (answer, error) {
		built, err := gemini.Build(r, gemini.Options{})
		if err != nil {
			return answer{}, err
		}
		response, err := client.Models.GenerateContent(ctx, built.Model, built.Contents, built.Config)
		if err != nil {
			return answer{}, err
		}
		e, err := gemini.Reply(response, built.Names, func() string {
			calls++
			return "call-" + strconv.Itoa(calls)
		})
		return answer{e, gemini.Usage(response.UsageMetadata), built.Changes}, err
	}, err
}
