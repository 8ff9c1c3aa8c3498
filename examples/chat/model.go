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

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/anthropic"
	"github.com/grapnelhq/grapnel/providers/facts"
	"github.com/grapnelhq/grapnel/providers/gemini"
	"github.com/grapnelhq/grapnel/providers/openai"
)

// model is what the chat needs of a provider.
type model interface {
	// name says whose model it is, and which.
	name() (provider, model string)
	// ask sends a request and returns the answer and what it cost.
	ask(ctx context.Context, r providers.Request) (history.Entry, phases.Usage, error)
}

// connect makes the client of a provider: of the fake one, which end stops, or of
// the real one, whose key the SDK finds in the environment.
func connect(ctx context.Context, o options, count func(string) int) (m model, end func(), err error) {
	end, url := func() {}, ""
	if o.fake {
		f, err := newFake(o, count)
		if err != nil {
			return nil, nil, err
		}
		end, url = f.server.Close, f.server.URL
	}
	switch o.provider {
	case facts.Anthropic:
		m = newAnthropic(o.modelOr("claude-opus-5"), url)
	case facts.OpenAI:
		m = newOpenAI(o.modelOr("gpt-5"), url)
	case facts.Gemini:
		m, err = newGemini(ctx, o.modelOr("gemini-3-flash"), url)
	default:
		err = fmt.Errorf("there is no provider %q", o.provider)
	}
	if err != nil {
		end()
	}
	return m, end, err
}

func (o options) modelOr(usual string) string { return cmp.Or(o.model, usual) }

// onAnthropic talks to Anthropic's Messages API.
type onAnthropic struct {
	model  string
	client anthropicsdk.Client
}

func newAnthropic(model, url string) *onAnthropic {
	if url == "" {
		return &onAnthropic{model, anthropicsdk.NewClient()}
	}
	return &onAnthropic{model, anthropicsdk.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"))}
}

func (m *onAnthropic) name() (provider, model string) { return facts.Anthropic, m.model }

func (m *onAnthropic) ask(ctx context.Context, r providers.Request) (history.Entry, phases.Usage, error) {
	// A turn has several rounds here, and each finds the one before it.
	built, err := anthropic.Build(r, anthropic.Options{CacheConversation: true})
	if err != nil {
		return history.Entry{}, phases.Usage{}, err
	}
	message, err := m.client.Messages.New(ctx, built.Params)
	if err != nil {
		return history.Entry{}, phases.Usage{}, err
	}
	e, err := anthropic.Reply(message, built.Names)
	return e, anthropic.Usage(message.Usage), err
}

// onOpenAI talks to OpenAI's Responses API.
type onOpenAI struct {
	model  string
	client openaisdk.Client
}

func newOpenAI(model, url string) *onOpenAI {
	if url == "" {
		return &onOpenAI{model, openaisdk.NewClient()}
	}
	return &onOpenAI{model, openaisdk.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"))}
}

func (m *onOpenAI) name() (provider, model string) { return facts.OpenAI, m.model }

func (m *onOpenAI) ask(ctx context.Context, r providers.Request) (history.Entry, phases.Usage, error) {
	built, err := openai.Build(r, openai.Options{})
	if err != nil {
		return history.Entry{}, phases.Usage{}, err
	}
	response, err := m.client.Responses.New(ctx, built.Params)
	if err != nil {
		return history.Entry{}, phases.Usage{}, err
	}
	e, err := openai.Reply(response, built.Names)
	return e, openai.Usage(response.Usage), err
}

// onGemini talks to Google's generateContent API.
type onGemini struct {
	model  string
	client *genai.Client
	// calls counts the calls that came without an id.
	calls int
}

func newGemini(ctx context.Context, model, url string) (*onGemini, error) {
	var c *genai.ClientConfig
	if url != "" {
		c = &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}}
	}
	client, err := genai.NewClient(ctx, c)
	return &onGemini{model: model, client: client}, err
}

func (m *onGemini) name() (provider, model string) { return facts.Gemini, m.model }

func (m *onGemini) ask(ctx context.Context, r providers.Request) (history.Entry, phases.Usage, error) {
	built, err := gemini.Build(r, gemini.Options{})
	if err != nil {
		return history.Entry{}, phases.Usage{}, err
	}
	response, err := m.client.Models.GenerateContent(ctx, built.Model, built.Contents, built.Config)
	if err != nil {
		return history.Entry{}, phases.Usage{}, err
	}
	e, err := gemini.Reply(response, built.Names, func() string {
		m.calls++
		return "call-" + strconv.Itoa(m.calls)
	})
	return e, gemini.Usage(response.UsageMetadata), err
}
