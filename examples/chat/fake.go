package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/compiler"
)

// fake is a server on the loopback with the API of one provider. Its model can add
// numbers if it has the tool; its prompt cache forgets nothing.
type fake struct {
	server *httptest.Server
	shape  shape
	count  func(string) int
	rules  compiler.ModelCache

	mu    sync.Mutex
	kept  []string // beginnings of requests
	calls int
}

func newFake(o options, count func(string) int) (*fake, error) {
	shape, ok := shapes()[o.provider]
	if !ok {
		return nil, fmt.Errorf("there is no provider %q", o.provider)
	}
	table, err := compiler.LoadCacheFacts()
	if err != nil {
		return nil, err
	}
	rules, _ := table.Lookup(o.provider, cmp.Or(o.model, shape.model))
	f := &fake{shape: shape, count: count, rules: rules}
	f.server = httptest.NewServer(f)
	return f, nil
}

// ServeHTTP answers one request.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := f.answer(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a client that is gone has no use for it
}

func (f *fake) answer(request io.Reader) ([]byte, error) {
	body, err := io.ReadAll(request)
	if err != nil {
		return nil, err
	}
	parts, err := f.shape.read(body)
	if err != nil {
		return nil, err
	}
	v, err := newView(parts)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return json.Marshal(f.shape.write(decide(v, fmt.Sprintf("call-%d", f.calls)), f.serve(v.blocks)))
}

type cost struct{ input, read, written int }

// serve finds the longest beginning of a request that is in the cache, and keeps what later ones may begin with.
// Providers with explicit breakpoints compare whole beginnings, others any part.
func (f *fake) serve(blocks []block) (c cost) {
	var text strings.Builder
	var marked []string
	for _, b := range blocks {
		text.WriteString(b.text)
		if b.marked {
			marked = append(marked, text.String())
		}
	}
	request := text.String()
	c.input = f.count(request)
	for _, known := range f.kept {
		alike := len(known)
		if !f.rules.Explicit {
			alike = sameBeginning(known, request)
		}
		if strings.HasPrefix(request, known[:alike]) {
			c.read = max(c.read, f.worth(known[:alike]))
		}
	}
	if !f.rules.Explicit {
		f.kept = append(f.kept, request)
		return c
	}
	for _, beginning := range marked {
		f.kept = append(f.kept, beginning)
		c.written = max(c.written, f.worth(beginning)-c.read)
	}
	return c
}

// worth is what a beginning counts in the cache: nothing below the minimum.
func (f *fake) worth(beginning string) int {
	tokens := f.count(beginning)
	if tokens < f.rules.MinimumTokens {
		return 0
	}
	return tokens - tokens%max(f.rules.StepTokens, 1)
}

func sameBeginning(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

type said struct {
	text     string
	id, tool string
	args     json.RawMessage
}

func decide(v view, id string) said {
	var numbers []any
	for word := range strings.FieldsSeq(v.last) {
		var n float64
		if _, err := fmt.Sscanf(strings.Trim(word, "?."), "%g", &n); err == nil {
			numbers = append(numbers, n)
		}
	}
	switch {
	case v.result != "" && !strings.Contains(v.result, `"loaded"`):
		return said{text: "That is " + strings.Trim(v.result, `"`) + "."}
	case strings.HasPrefix(v.last, "Thank"):
		return said{text: "You are welcome."}
	case len(numbers) != 2:
		return said{text: "I am to be brief."}
	case slices.Contains(v.tools, "add"):
		return said{id: id, tool: "add", args: fmt.Appendf(nil, `{"a":%v,"b":%v}`, numbers...)}
	default:
		return said{id: id, tool: "request_tools", args: json.RawMessage(`{"domains":["arithmetic"]}`)}
	}
}
