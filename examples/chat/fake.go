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
// numbers if it has the tool; its prompt cache needs no breakpoints and forgets nothing.
type fake struct {
	server *httptest.Server
	shape  shape
	count  func(string) int
	rules  compiler.ModelCache

	mu    sync.Mutex
	kept  []string // requests
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
	v, err := newView(body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return json.Marshal(f.shape.write(decide(v, fmt.Sprintf("call-%d", f.calls)), f.serve(v.text.String())))
}

type cost struct{ input, read int }

// serve finds the longest beginning of a request that is in the cache, and keeps the request for later ones.
func (f *fake) serve(request string) cost {
	c := cost{input: f.count(request)}
	for _, known := range f.kept {
		tokens := f.count(request[:sameBeginning(known, request)])
		if tokens >= f.rules.MinimumTokens {
			c.read = max(c.read, tokens-tokens%max(f.rules.StepTokens, 1))
		}
	}
	f.kept = append(f.kept, request)
	return c
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

func decide(v *view, id string) said {
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
