// Package webtest tries the gateway's page in a real browser: Chromium, which chromedp drives, on real gateways.
package webtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	devpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/grapnelhq/grapnel/internal/cli/client"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

var program string // grapnel, as this checkout has it

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "webtest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what stays is the system's to remove
	program = filepath.Join(dir, "grapnel")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", program, "./cmd/grapnel")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building grapnel: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// browserProgram finds Chromium. Without one the tests are skipped, but in CI they fail.
func browserProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no chromium")
	}
	t.Skip("there is no chromium: install Debian's package")
	return ""
}

// gateway is a running "grapnel serve".
type gateway struct {
	args []string
	env  []string
	cmd  *exec.Cmd
	url  string

	token string // of its calls; empty without tokens
}

// serve starts a gateway with a directory of its own; its args follow.
func serve(t *testing.T, args ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{args: args, env: append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "GRAPNEL_CONFIG=")}
	g.start(t, "127.0.0.1:0")
	t.Cleanup(func() { g.stop(t) })
	return g
}

func (g *gateway) start(t *testing.T, listen string) {
	t.Helper()
	g.cmd = exec.CommandContext(context.Background(), program, append([]string{"serve", "--listen", listen}, g.args...)...)
	g.cmd.Env = g.env
	errs := &bytes.Buffer{}
	g.cmd.Stderr = errs
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = g.cmd.Wait()
		t.Fatalf("serve has not begun: %v\n%s", err, errs)
	}
	g.url = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// kill ends the gateway as a power cut would; again starts it at the same address.
func (g *gateway) kill(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.cmd.Wait()
	g.cmd = nil
}

func (g *gateway) again(t *testing.T) {
	t.Helper()
	g.start(t, strings.TrimPrefix(g.url, "http://"))
}

func (g *gateway) stop(t *testing.T) {
	t.Helper()
	if g.cmd == nil {
		return
	}
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

type object = map[string]any

// call calls a method as another client.
func (g *gateway) call(t *testing.T, method string, params object) object {
	t.Helper()
	result, err := g.tryCall(t, method, params)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

func (g *gateway) tryCall(t *testing.T, method string, params object) (result object, err error) {
	t.Helper()
	c, err := client.Dial(t.Context(), g.url, client.Options{Token: g.token})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // over HTTP it closes idle connections
	err = c.Call(t.Context(), method, params, &result)
	return result, err
}

// page is a browser of its own: nothing is shared with others.
type page struct {
	ctx context.Context

	mu       sync.Mutex
	mistakes []string // what the console was told, policy violations among it
	pardoned []string
}

// height is that of all browsers, in pixels.
const height = 900

// open opens an address in a new browser of a width.
func open(t *testing.T, address string, width int64) *page {
	t.Helper()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browserProgram(t)), chromedp.NoSandbox, chromedp.Flag("force-prefers-reduced-motion", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-gpu", true)) // containers have little of the one, and none of the other
	p := &page{ctx: launch(t, opts)}
	p.show(t, address, width)
	return p
}

// tab opens an address in another tab of the page's browser.
func (p *page) tab(t *testing.T, address string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	t.Cleanup(cancel)
	other := &page{ctx: ctx}
	other.show(t, address, 1280)
	return other
}

// show prepares the page's new tab, and opens an address in it.
func (p *page) show(t *testing.T, address string, width int64) {
	t.Helper()
	if err := chromedp.Listen(p.ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	p.do(t, chromedp.EmulateViewport(width, height)) // which makes a new tab
	if _, err := chromedp.Call(p.ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.hearViolations(t)
	p.do(t, chromedp.Navigate(address))
	t.Cleanup(func() { p.wantNoMistakes(t) })
}

// launch starts a browser until the end of the test. Chromium itself crashes at its start now and then, where cores are few.
func launch(t *testing.T, opts []chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	for attempt := 1; ; attempt++ {
		ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
		t.Cleanup(cancel)
		ctx, cancel = chromedp.NewContext(ctx)
		t.Cleanup(cancel)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1"))
		switch {
		case err == nil:
			return ctx
		case attempt == 3 || !strings.Contains(err.Error(), "chrome failed to start"):
			t.Fatal(err)
		}
		t.Logf("once more: %.300v", err)
	}
}

// hearViolations makes each violation of the content security policy a mistake, in whatever document it happens.
func (p *page) hearViolations(t *testing.T) {
	t.Helper()
	if _, err := chromedp.Call(p.ctx, runtime.AddBinding, runtime.AddBindingParams{Name: "violated"}); err != nil {
		t.Fatal(err)
	}
	p.onNewDocument(t, `addEventListener("securitypolicyviolation", e => violated(e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile), true)`)
}

// onNewDocument runs a script at the beginning of each document to come.
func (p *page) onNewDocument(t *testing.T, source string) {
	t.Helper()
	_, err := chromedp.Call(p.ctx, devpage.AddScriptToEvaluateOnNewDocument, devpage.AddScriptToEvaluateOnNewDocumentParams{Source: source})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *page) listen(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError {
			return
		}
		var parts []string
		for _, arg := range e.Args {
			parts = append(parts, string(arg.Value), arg.Description)
		}
		text = strings.Join(parts, " ")
	case *runtime.EventBindingCalled:
		text = "policy violation: " + e.Payload
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError {
			return
		}
		text = e.Entry.Text + " " + e.Entry.URL
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mistakes = append(p.mistakes, text)
}

// pardon expects mistakes that hold a text: a browser reports each connection that fails.
func (p *page) pardon(part string) { p.pardoned = append(p.pardoned, part) }

func (p *page) wantNoMistakes(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.mistakes {
		if !slices.ContainsFunc(p.pardoned, func(part string) bool { return strings.Contains(m, part) }) {
			t.Errorf("the console has: %s", m)
		}
	}
}

func (p *page) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := p.try(actions...); err != nil {
		t.Fatalf("%v\nthe page has:\n%s", err, p.text())
	}
}

func (p *page) try(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

func (p *page) text() string {
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText")) // for a message
	return text
}

// wants waits until the page shows a text.
func (p *page) wants(t *testing.T, text string) {
	t.Helper()
	p.await(t, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// await waits until an expression is true.
func (p *page) await(t *testing.T, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
		switch {
		case err == nil:
			return
		case !strings.Contains(err.Error(), "Cannot find context"): // the page has just gone to another document
			t.Fatalf("%s: %v\nthe page has:\n%s", expression, err, p.text())
		}
	}
}

// value evaluates an expression.
func value[T any](t *testing.T, p *page, expression string) T {
	t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}
