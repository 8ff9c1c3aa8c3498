package openaihttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Options configure a [Proxy]. Engine and Upstream have to be set.
type Options struct {
	Engine *runtime.Engine
	// Upstream is the API's address, such as https://api.openai.com. A path in it stands before the request's.
	Upstream *url.URL
	// Transport sends the requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
	// Context says which turn a request is about; nil is [FromHeaders]. A thread id promises that all requests with it,
	// under one set of credentials, are one conversation; a turn id, that they are one turn. Without them turns are found
	// by their calls. An error refuses the request. It may be called concurrently.
	Context func(*http.Request) (phases.Context, error)
	// Input is what each prompt is compiled from, beside what the request says: the user's text, model, tools, and the
	// client's own instructions, which become the custom section [ClientSection]. Limits of 0 for the host's texts are
	// 256 Ki and 512 Ki characters here.
	Input runtime.CompileInput
	// Ask, MaxResultChars and KeepResult are those of [loop.Options].
	Ask            func(ctx context.Context, about *loop.Refused) (bool, error)
	MaxResultChars int
	KeepResult     func(ctx context.Context, c loop.Call, text string) (how string)
	// MaxRounds is how often one request may ask the model; 0 is 16.
	MaxRounds int
	// MaxBody bounds requests and answers in bytes; 0 is 32 MiB.
	MaxBody int64
	// MaxOpen bounds the answers whose calls the client has not answered yet; 0 is 10,000. The oldest are given up.
	MaxOpen int
	// Idle is how long a turn waits for the client to answer calls; 0 is ten minutes.
	Idle time.Duration
	// KeepBytes bounds what is remembered of conversations; 0 is 64 MiB. What was not used for longest goes first.
	KeepBytes int
	// Logger gets what no client is to see; nil discards it. Headers and texts are never logged.
	Logger *slog.Logger

	_ struct{}
}

func (o Options) withDefaults() Options {
	o.Transport = cmp.Or(o.Transport, http.DefaultTransport)
	o.MaxRounds = cmp.Or(o.MaxRounds, 16)
	o.MaxBody = cmp.Or(o.MaxBody, 32<<20)
	o.MaxOpen = cmp.Or(o.MaxOpen, 10_000)
	o.Idle = cmp.Or(o.Idle, 10*time.Minute)
	o.KeepBytes = cmp.Or(o.KeepBytes, 64<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Input.Limits.SectionChars = cmp.Or(o.Input.Limits.SectionChars, 256<<10)
	o.Input.Limits.TotalChars = cmp.Or(o.Input.Limits.TotalChars, 512<<10)
	if o.Context == nil {
		o.Context = FromHeaders
	}
	return o
}

// FromHeaders takes ids from X-Grapnel-Workspace, -Thread, -Turn and -Agent. It believes them: before clients that are
// not trusted, [Options].Context has to find out who asks.
func FromHeaders(r *http.Request) (phases.Context, error) {
	of := func(name string) string { return r.Header.Get(headerPrefix + name) }
	return phases.Context{WorkspaceID: of("Workspace"), ThreadID: of("Thread"), TurnID: of("Turn"), AgentID: of("Agent")}, nil
}

const headerPrefix = "X-Grapnel-"

// Proxy is an http.Handler before an API. It is safe for concurrent use.
//
//  1. New makes it.
//  2. It serves until Close, which ends the turns that wait for their clients. Close it before the engine, when the
//     server has stopped; it may be called twice.
type Proxy struct {
	o      Options
	secret string // makes places unguessable
	memory memory

	mu     sync.Mutex
	closed bool
	named  map[place]*turn
	open   map[place]*waiting
	waits  []*waiting // the oldest first
}

// New returns an error for missing options.
func New(o Options) (*Proxy, error) {
	if o.Engine == nil || o.Upstream == nil || o.Upstream.Host == "" {
		return nil, errors.New("openaihttp: Engine and Upstream have to be set")
	}
	o = o.withDefaults()
	return &Proxy{o: o, secret: rand.Text(), memory: memory{most: o.KeepBytes}, named: map[place]*turn{}, open: map[place]*waiting{}}, nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	proxy := httputil.ReverseProxy{
		Transport: p.o.Transport, ErrorLog: slog.NewLogLogger(p.o.Logger.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.fail(w, r, err) },
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.o.Upstream)
			for name := range r.Out.Header {
				if strings.HasPrefix(name, headerPrefix) {
					r.Out.Header.Del(name)
				}
			}
		},
	}
	all := shapes()
	i := slices.IndexFunc(all, func(s *shape) bool { return strings.HasSuffix(path.Clean("/"+r.URL.Path), s.path) })
	switch {
	case i < 0:
	case r.Header.Get("Upgrade") != "":
		p.fail(w, r, &badRequest{http.StatusNotImplemented, errors.New("what passes over another protocol would not be judged")})
		return
	case r.Method == http.MethodPost:
		x := &exchange{p: p, shape: all[i], in: r}
		defer x.finish(errAbandoned) //nolint:contextcheck // for panics; the turn outlives its requests
		proxy.Transport = x
	}
	proxy.ServeHTTP(w, r)
}

var errAbandoned = errors.New("the request was abandoned")

// badRequest is an error of the client's.
type badRequest struct {
	status int
	error
}

// fail answers with an error that is of the form of all three APIs.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, body := p.problem(r.Context(), err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(body)) // a client that is gone needs no answer
}

// problem is what a client sees of an error. Only refusals and errors of its own have their text.
func (p *Proxy) problem(ctx context.Context, err error) (int, object) {
	status, kind, code, message := http.StatusBadGateway, "api_error", "upstream_failed", "the API behind the proxy has not answered as it should"
	if upstream, ok := errors.AsType[*upstreamError](err); ok {
		message += ": " + upstream.res.Status
	}
	if refused, ok := errors.AsType[*loop.Refused](err); ok {
		status, kind, code, message = http.StatusForbidden, "permission_error", "refused", refused.Error()
	} else if bad, ok := errors.AsType[*badRequest](err); ok {
		status, kind, code, message = bad.status, "invalid_request_error", "not_possible", bad.Error()
	} else if _, ok := errors.AsType[*loop.ProviderError](err); !ok && ctx.Err() == nil {
		status, code, message = http.StatusServiceUnavailable, "proxy_failed", "the plugins cannot judge this request"
	}
	if status >= http.StatusInternalServerError && ctx.Err() == nil {
		p.o.Logger.Warn("a request failed", "error", err)
	}
	inner := newObject("type", kind, "code", code, "message", message, "param", nil)
	return status, newObject("type", "error", "error", inner, "code", code, "message", message, "param", nil)
}

// RoundTrip implements http.RoundTripper for the reverse proxy: it begins or continues a turn, asks the model until it
// has an answer for the client, and returns that.
func (x *exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	x.out, x.ctx = out, out.Context()
	err := x.begin()
	for err == nil && !x.done && x.buffer.Len() == 0 {
		err = x.step() //nolint:contextcheck // the turn outlives its requests
	}
	if err != nil {
		x.finish(err) //nolint:contextcheck // the turn outlives its requests
		if upstream, ok := errors.AsType[*upstreamError](err); ok {
			return upstream.res, nil
		}
		return nil, err
	}
	res := *x.res
	res.Header = res.Header.Clone()
	res.Header.Del("Content-Length")
	res.ContentLength, res.Body = -1, x
	if !x.streamed {
		res.ContentLength = int64(x.buffer.Len())
	}
	return &res, nil
}

// Read implements io.Reader: it makes as much of the answer as is read.
func (x *exchange) Read(b []byte) (int, error) {
	for x.buffer.Len() == 0 {
		if x.done {
			return 0, io.EOF
		}
		if err := x.step(); err != nil {
			x.finish(err)
			if x.ctx.Err() != nil {
				return 0, err
			}
			if _, problem := x.p.problem(x.ctx, err); x.streamed && x.answer.err == nil {
				x.emit(newEvent(problem))
			}
		}
	}
	return x.buffer.Read(b)
}

// Close implements io.Closer. An answer that nobody reads to its end is an interruption.
func (x *exchange) Close() error {
	if w := x.waits; w != nil && x.buffer.Len() > 0 {
		x.p.expire(context.WithoutCancel(x.ctx), w) // the client has not got the calls
	}
	x.finish(context.Canceled)
	if x.res != nil {
		return x.res.Body.Close()
	}
	return nil
}

// upstreamError is an answer of the API's that the client gets as it is.
type upstreamError struct{ res *http.Response }

func (e *upstreamError) Error() string { return "the API answered " + e.res.Status }

// keepBody reads an answer's body, so that its connection is free.
func keepBody(res *http.Response, most int64) error {
	raw, err := io.ReadAll(io.LimitReader(res.Body, most))
	_ = res.Body.Close() // it is read
	res.Body = io.NopCloser(bytes.NewReader(raw))
	return err
}
