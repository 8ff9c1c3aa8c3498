package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// checkCancelled makes the call with a context that has ended. If it does not return, nothing more can be tried.
func (r *run) checkCancelled() bool {
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ask(ctx, inProcess{r.plugin})
	}()
	select {
	case <-done:
		return true
	case <-time.After(r.c.Patience):
		r.Errorf("the call does not return when its context ends: after %v it still runs", r.c.Patience)
		return false
	}
}

// twice makes the call two times and compares the answers.
func (r *run) twice(where string, to caller) Answer {
	first, second := r.ask(r.Context(), to), r.ask(r.Context(), to)
	for i := range min(len(first.Contributions), len(second.Contributions)) {
		if first.Contributions[i] != nil && first.Contributions[i] == second.Contributions[i] {
			r.Errorf("%s: contribution %d of two answers is one value; what a handler returns belongs to the host, so return a new one each time", where, i)
		}
	}
	if a, b := r.encode(first), r.encode(second); r.c.Volatile == "" && !isPanic(first) && !bytes.Equal(a, b) {
		r.Errorf("%s: the same call gives two answers\nfirst:  %s\nsecond: %s", where, a, b)
	}
	return first
}

func (r *run) checkAnswer(a Answer) {
	switch {
	case isPanic(a):
		r.Errorf("the handler panics: %s", a.Error.Message)
	case r.c.anyCode:
	case a.Error != nil && a.Error.Code != r.c.WantCode:
		r.Errorf("the plugin fails with the code %q (%s), want %q", a.Error.Code, a.Error.Message, r.c.WantCode)
	case a.Error == nil && r.c.WantCode != "":
		r.Errorf("the plugin succeeds, want the error %q", r.c.WantCode)
	}
	if len(a.Content) > 0 {
		if err := jsonscan.Check(a.Content, phases.MaxJSONDepth); err != nil {
			r.Errorf("the tool's content %v", err)
		}
	}
	if n := len(a.Contributions); n > phases.MaxContributions {
		r.Errorf("%d contributions; a host takes %d", n, phases.MaxContributions)
	}
	for i, c := range a.Contributions {
		if c == nil {
			r.Errorf("contribution %d is nil", i)
			continue
		}
		if k := phases.KindOf(c); k.NeedsGrant() && !slices.Contains(r.hook.Kinds, k) {
			r.Errorf("contribution %d is of the kind %s, which the hook %s does not declare in Kinds", i, k, r.hook.Name)
		}
		if err := phases.ValidateContribution(c, r.row); err != nil {
			r.Errorf("contribution %d is not well formed: %s", i, phases.Whole(err))
		}
	}
}

func isPanic(a Answer) bool { return a.Error != nil && a.Error.Code == codePanic }

// encode is a value as it is compared: an answer without the stack of a panic.
func (r *run) encode(v any) []byte {
	if a, ok := v.(Answer); ok && isPanic(a) {
		a.Error = &Failure{Code: codePanic}
		v = a
	}
	data, err := encode(v)
	if err != nil {
		r.Errorf("the answer cannot be written as JSON: %v", err)
	}
	return data
}

func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}

// label marks the goroutines of one run in the runtime's profile; the ones that they start inherit it.
const label = "plugintest"

// watch runs f and reports goroutines that f has started and that still run after patience.
func watch(t TB, patience time.Duration, f func()) {
	t.Helper()
	// The address of a local value is this run's own.
	var mark byte
	id := fmt.Sprintf("%p", &mark)
	defer runtime.KeepAlive(&mark)
	pprof.Do(t.Context(), pprof.Labels(label, id), func(context.Context) { f() })

	left := labelled(id)
	for end := time.Now().Add(patience); left != "" && time.Now().Before(end); left = labelled(id) {
		<-time.After(time.Millisecond)
	}
	if left != "" {
		t.Errorf("goroutines of the plugin are left:\n%s", left)
	}
}

func labelled(id string) string {
	var out bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&out, 1); err != nil {
		return "" // a buffer takes everything
	}
	var left []string
	for record := range strings.SplitSeq(out.String(), "\n\n") {
		if strings.Contains(record, strconv.Quote(label)+":"+strconv.Quote(id)) {
			left = append(left, record)
		}
	}
	return strings.Join(left, "\n\n")
}

// overWire makes the call through the wire and compares description and answer with those in process.
func (r *run) overWire(want *phases.Description) {
	s, stop, err := serve(r.Context(), r.plugin, r.c.Host)
	if err != nil {
		r.Errorf("over the wire: %v", err)
		return
	}
	defer stop()
	got, err := s.Configure(r.Context(), r.configuration())
	if err != nil {
		r.Errorf("over the wire: the plugin does not take its configuration: %v", err)
		return
	}
	if a, b := r.encode(want), r.encode(got); !bytes.Equal(a, b) {
		r.Errorf("the description is another over the wire\nin process: %s\nwire:       %s", a, b)
	}
	answer := r.twice("over the wire", session{s})
	if a, b := r.encode(r.answer), r.encode(answer); r.c.Volatile == "" && !bytes.Equal(a, b) {
		r.Errorf("the answer is another over the wire\nin process: %s\nwire:       %s", a, b)
	}
}

type session struct{ *wire.Session }

func (s session) dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
	res, _, err := s.Dispatch(ctx, d, nil)
	return res, err
}

func (s session) callTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
	res, _, err := s.CallTool(ctx, c, nil)
	return res, err
}

// serve serves a plugin on a socket and opens a session with it. stop ends both and waits for them.
func serve(ctx context.Context, p *sdk.Plugin, host phases.Host) (s *wire.Session, stop func(), err error) {
	// Not the test's own directory: its path may be too long for a socket.
	dir, err := os.MkdirTemp("", "plugintest")
	if err != nil {
		return nil, nil, err
	}
	ends := []func(){func() { _ = os.RemoveAll(dir) }} // only litter in a temporary directory
	stop = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	socket := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	server := wire.NewServer(wire.ServerOptions(0)...)
	wire.Register(server, p, nil)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Stop; what else goes wrong the session meets
	}()
	ends = append(ends, func() { server.Stop(); <-served })
	conn, err := wire.Connect(socket, 0)
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, func() { _ = conn.Close() }) // fails only when closed before
	s, err = wire.Open(ctx, conn, wire.HostOptions{Incarnation: 1, Instance: p.Name, Host: host})
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, s.Close)
	return s, stop, nil
}
