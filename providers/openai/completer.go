package openai

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	// maxAnswerBytes bounds an answer: the longest text for plugins with each of its
	// bytes escaped, and what stands around it.
	maxAnswerBytes  = 6*phases.MaxCompletionOutput + 512<<10
	maxProblemBytes = 64 << 10 // of an answer that reports an error
	schemaName      = "answer" // the default; the API demands one
)

// CompleterOptions say which server and model a Completer calls.
type CompleterOptions struct {
	// BaseURL is the server's, with its version, such as "http://localhost:8000/v1"; empty is OpenAI's own.
	BaseURL string
	// APIKey is sent as the bearer token; empty sends none. The environment is ignored.
	APIKey string
	// Model is the model's name there. It must be set.
	Model string
	// OldLimit sends max_tokens instead of max_completion_tokens, for older servers.
	OldLimit bool
	// Extra are further members of each request, such as "temperature".
	Extra map[string]any
	// HTTPClient sends the requests; nil is http.DefaultClient.
	HTTPClient *http.Client

	_ struct{}
}

// Completer calls a model over the Chat Completions API. Its Complete is a
// runtime.Options.Complete. It is safe for concurrent use.
type Completer struct {
	service sdk.ChatCompletionService
	o       CompleterOptions
}

// NewCompleter checks the options and sends nothing.
func NewCompleter(o CompleterOptions) (*Completer, error) {
	if o.Model == "" {
		return nil, errors.New("openai: a completer needs the name of a model")
	}
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(0)}
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("openai: the completer's base URL is not an http or https URL") // it may hold a password
		}
		opts = append(opts, option.WithBaseURL(o.BaseURL))
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	opts = append(opts, option.WithHTTPClient(cmp.Or(o.HTTPClient, http.DefaultClient)))
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		opts = append(opts, option.WithJSONSet(name, o.Extra[name]))
	}
	return &Completer{service: sdk.NewChatCompletionService(opts...), o: o}, nil
}

// Complete sends one request and does not retry. An error is a *[phases.Error]; it is Retryable if the request may
// work later. Plugins may see its message, which has no text of the server.
func (c *Completer) Complete(ctx context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
	var got *http.Response
	body := &bounded{}
	res, err := c.service.New(ctx, c.params(rq), option.WithResponseInto(&got), option.WithMiddleware(body.bind))
	switch {
	case err == nil:
		return c.response(res)
	case ctx.Err() != nil:
		return phases.CompletionResponse{}, abandoned(ctx)
	case errors.Is(err, errTooLong):
		return phases.CompletionResponse{}, phases.Errorf(phases.CauseOversizeReply, "the model's server answered with more than %d bytes", maxAnswerBytes)
	case got != nil && got.StatusCode >= http.StatusBadRequest:
		return phases.CompletionResponse{}, refused(got.StatusCode, err)
	case got == nil || body.failed:
		return phases.CompletionResponse{}, unreachable(err)
	}
	return phases.CompletionResponse{}, nonsense(err)
}

func (c *Completer) params(rq phases.CompletionRequest) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: c.o.Model}
	if rq.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(rq.System))
	}
	p.Messages = append(p.Messages, sdk.UserMessage(rq.Input))
	switch {
	case rq.MaxOutputTokens <= 0:
	case c.o.OldLimit:
		p.MaxTokens = sdk.Int(int64(rq.MaxOutputTokens))
	default:
		p.MaxCompletionTokens = sdk.Int(int64(rq.MaxOutputTokens))
	}
	if len(rq.Schema) > 0 {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			// Strict schemas are a dialect of their own, which plugins do not write.
			Name: cmp.Or(rq.SchemaName, schemaName), Schema: rq.Schema, Strict: sdk.Bool(false),
		}}
	}
	return p
}

func (c *Completer) response(res *sdk.ChatCompletion) (phases.CompletionResponse, error) {
	if len(res.Choices) == 0 {
		return phases.CompletionResponse{}, nonsense(errors.New("it has no choices"))
	}
	choice := &res.Choices[0]
	out := phases.CompletionResponse{
		Text: choice.Message.Content, Model: cmp.Or(res.Model, c.o.Model), Stopped: stopped(choice.FinishReason),
		Usage: phases.Usage{
			InputTokens: int(res.Usage.PromptTokens), OutputTokens: int(res.Usage.CompletionTokens),
			CacheReadTokens: int(res.Usage.PromptTokensDetails.CachedTokens), CacheWriteTokens: int(res.Usage.PromptTokensDetails.CacheWriteTokens),
		},
	}
	if choice.Message.Refusal != "" {
		out.Text, out.Stopped = cmp.Or(out.Text, choice.Message.Refusal), phases.StoppedRefusal
	}
	return out, nil
}

func stopped(reason string) phases.Stop {
	switch reason {
	case "stop", "":
		return phases.StoppedEnd
	case "length":
		return phases.StoppedLength
	case "content_filter":
		return phases.StoppedRefusal
	}
	return phases.StoppedOther
}

func abandoned(ctx context.Context) *phases.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return phases.Errorf(phases.CauseTimeout, "the model's server has not answered in time: %w", ctx.Err())
	}
	return phases.Errorf(phases.CauseCancelled, "the caller has abandoned the call: %w", ctx.Err())
}

func refused(status int, err error) *phases.Error {
	var e *phases.Error
	switch {
	case status == http.StatusTooManyRequests:
		e = phases.Errorf(phases.CauseOverloaded, "the model's server accepts no more requests for now (status %d)", status)
		e.Retryable = true
	case status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		e = phases.Errorf(phases.CauseUnavailable, "the model's server failed (status %d)", status)
		e.Retryable = true
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		e = phases.Errorf(phases.CauseUnavailable, "the model's server refuses this model to the host (status %d)", status)
	case status == http.StatusRequestEntityTooLarge:
		e = phases.Errorf(phases.CauseOversizeRequest, "the request is too large for the model's server (status %d)", status)
	default:
		e = phases.Errorf(phases.CauseInvalidReply, "the model's server refuses the request (status %d)", status)
	}
	e.Err = err
	return e
}

func unreachable(err error) *phases.Error {
	return &phases.Error{Code: phases.CauseUnavailable, Message: "the model's server cannot be reached", Retryable: true, Err: err}
}

func nonsense(err error) *phases.Error {
	return &phases.Error{Code: phases.CauseInvalidReply, Message: "the answer of the model's server cannot be read", Err: err}
}

var errTooLong = errors.New("the answer is too long")

type bounded struct {
	io.ReadCloser
	left   int
	silent bool // the limit is not an error
	failed bool // the connection broke
}

// bind replaces the answer's body. It is the SDK's middleware.
func (b *bounded) bind(rq *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(rq)
	if err != nil || res == nil || res.Body == nil {
		return res, err
	}
	b.ReadCloser, b.left, b.silent = res.Body, maxAnswerBytes, false
	if res.StatusCode >= http.StatusBadRequest {
		b.left, b.silent = maxProblemBytes, true
	}
	res.Body = b
	return res, nil
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 && b.silent {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 && !b.silent {
		return 0, errTooLong
	}
	b.failed = b.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}
