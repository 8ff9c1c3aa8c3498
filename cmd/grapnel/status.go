package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/proc/peer"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const statusTime = 10 * time.Second // bounds the question: a gateway that does not answer it is not well

type statusFlags struct {
	reachFlags

	Hooks bool `flag:"hooks" usage:"show every hook and phase too"`
}

type statusResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	gateway.Status
}

func (a *app) status(ctx context.Context, f *statusFlags, _ []string) error {
	var result statusResult
	var err error
	if result.Target, err = f.ask(ctx, statusTime, "status", nil, &result.Status); err != nil {
		return err
	}
	return a.print(result, func() {
		a.printStatus(&result)
		if f.Hooks {
			a.printHooks(&result)
		}
	})
}

// tokenVariable has no flag: everybody on a machine can read the command lines of its processes.
const tokenVariable = "GRAPNEL_TOKEN" //nolint:gosec // a name, no token

// reachFlags say which gateway is called, and with which token.
type reachFlags struct {
	URL       string `flag:"url"        usage:"{URL} of the gateway (default: the one of yours that runs on this machine)"`
	Socket    string `flag:"socket"     usage:"unix socket of the gateway ({PATH})"`
	TokenFile string `flag:"token-file" usage:"{FILE} with the token itself (default $GRAPNEL_TOKEN, or the one that serve made)"`
}

type reached struct {
	*client.Client

	target string
}

// A gateway with a note proves its identity before it gets the token.
func (f *reachFlags) reach(ctx context.Context) (*reached, error) {
	target, n, err := f.target()
	if err != nil {
		return nil, err
	}
	token, err := f.token(n)
	if err != nil {
		return nil, err
	}
	o := client.Options{Token: token}
	if n != nil {
		o.Prove = n.prove
	}
	u, err := url.Parse(target)
	if err == nil && token != "" && o.Prove == nil && (u.Scheme == "http" || u.Scheme == "ws") && !isThisMachine(u.Hostname()) {
		return nil, usagef("--url %s: everybody on the way could read the token; use https://, or a tunnel to this machine (ssh -L)", target)
	}
	c, err := client.Dial(ctx, target, o)
	r := &reached{c, target}
	if err != nil {
		return nil, r.failed(err)
	}
	return r, nil
}

func (f *reachFlags) token(n *note) (string, error) {
	file := f.TokenFile
	if file == "" {
		if token := os.Getenv(tokenVariable); token != "" || n == nil || n.SecretFile == "" {
			return token, nil
		}
		file = n.SecretFile
	}
	token, err := readSecret(file)
	if err != nil {
		return "", usagef("the token: %w", err)
	}
	return token, nil
}

func (f *reachFlags) target() (target string, n *note, err error) {
	switch {
	case f.URL != "" && f.Socket != "":
		return "", nil, usagef("--url and --socket name two gateways; give one of them")
	case f.Socket != "":
		target = unixScheme + f.Socket
	case f.URL != "":
		if u, err := url.Parse(f.URL); err != nil || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "" {
			if path, isSocket := strings.CutPrefix(f.URL, unixScheme); isSocket {
				return "", nil, usagef("--url %q: a socket is named with --socket %s", f.URL, path)
			}
			return "", nil, usagef("--url %q: use http://HOST:PORT, as serve prints it", f.URL)
		}
		target = f.URL
	}
	list, err := readNotes()
	switch {
	case err != nil && target != "":
		return target, nil, nil // there is no place for notes
	case err != nil:
		return "", nil, unable(err)
	case target != "":
		n, err = noteAt(list, target)
		return target, n, err
	}
	n, err = onlyNote(list)
	if err != nil {
		return "", nil, err
	}
	return n.target(), n, nil
}

// The address of a killed gateway may be another program's by now: a socket proves its owner, a port does not.
func noteAt(list []note, target string) (*note, error) {
	var ended *note
	for i := range list {
		switch n := &list[i]; {
		case !n.at(target):
		case n.lives():
			return n, nil
		default:
			ended = n
		}
	}
	if ended != nil && !strings.HasPrefix(target, unixScheme) {
		return nil, unable(fmt.Errorf("the gateway at %s (process %d) was killed, and what answers there now is not known; start one with: grapnel serve; or remove %s if another one is meant",
			target, ended.PID, ended.path))
	}
	return nil, nil //nolint:nilnil // a gateway without a note
}

func onlyNote(list []note) (*note, error) {
	var running []*note
	var targets []string
	for i := range list {
		if n := &list[i]; n.lives() {
			running, targets = append(running, n), append(targets, n.target())
		}
	}
	switch {
	case len(running) == 1:
		return running[0], nil
	case len(running) > 1:
		return nil, usagef("%d gateways run here; choose one with --url or --socket: %s", len(running), strings.Join(targets, ", "))
	case len(list) > 0:
		n := &list[len(list)-1]
		return nil, unable(fmt.Errorf("no gateway runs here: the one of %s (process %d) at %s has ended without removing it; start one with: grapnel serve",
			n.path, n.PID, n.target()))
	default:
		return nil, unable(errors.New("no gateway of yours runs on this machine; start one with: grapnel serve, or name one with --url"))
	}
}

func (r *reached) failed(err error) error {
	if _, coded := errors.AsType[*exitError](err); coded {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	case errors.Is(err, context.DeadlineExceeded):
		return unable(fmt.Errorf("the gateway at %s takes calls and does not answer: it hangs, or its database does; look at its log, or start it again", r.target))
	case client.HasCode(err, rpc.CodeUnauthorized):
		return refused(fmt.Errorf("the gateway at %s: %w; tokens come from --token-file, $%s, or the file that serve names when it starts", r.target, err, tokenVariable))
	case client.HasCode(err, rpc.CodeNotFound), tree.HasCode(err, tree.CodeNotFound):
		return refused(fmt.Errorf("the gateway at %s: %w", r.target, err))
	case client.HasCode(err, rpc.CodeInvalid), tree.HasCode(err, tree.CodeInvalid):
		return usagef("the gateway at %s: %w", r.target, err)
	case errors.Is(err, syscall.ECONNREFUSED), strings.HasPrefix(r.target, unixScheme) && errors.Is(err, fs.ErrNotExist):
		return unable(fmt.Errorf("no gateway listens at %s; start one with: grapnel serve, or omit --url and --socket for the one that runs here", r.target))
	default:
		return unable(fmt.Errorf("the gateway at %s: %w", r.target, oneLine{err}))
	}
}

const askTime = 2 * time.Minute // bounds a call that starts plugins

func (f *reachFlags) ask(ctx context.Context, limit time.Duration, method string, params, result any) (target string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	r, err := f.reach(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // everything was answered
	if err := r.Call(ctx, method, params, result); err != nil {
		return "", r.failed(err)
	}
	return r.target, nil
}

const maxProof = 8 << 10

// prove verifies that the note's gateway is at the other end. A port gets nothing but a random number to sign.
func (n *note) prove(ctx context.Context, conn net.Conn) error {
	var err error
	if _, ok := conn.(*net.UnixConn); ok {
		var c peer.Credentials
		c, err = peer.Of(conn)
		if errors.Is(err, peer.ErrUnsupported) {
			return nil // the socket proves its user
		}
		if err == nil && c.PID != n.PID {
			err = fmt.Errorf("process %d listens there", c.PID)
		}
	} else {
		err = n.challenge(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("another program answers at %s, not the gateway of %s (process %d): no token was sent to it: %w", conn.RemoteAddr(), n.path, n.PID, err)
	}
	return nil
}

func (n *note) challenge(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	by, _ := ctx.Deadline()
	if err := conn.SetDeadline(by); err != nil {
		return err
	}
	nonce := rand.Text()
	if _, err := fmt.Fprintf(conn, "GET %s?nonce=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", gateway.IdentityPath, nonce); err != nil {
		return err
	}
	proof, err := readProof(conn)
	if err != nil {
		return err
	}
	if !hmac.Equal(proof, []byte(gateway.Proof(n.Secret, nonce, conn.RemoteAddr().String()))) {
		return errors.New("its proof is wrong")
	}
	return conn.SetDeadline(time.Time{})
}

// readProof leaves the connection usable for the next request.
func readProof(conn io.Reader) ([]byte, error) {
	r := bufio.NewReader(io.LimitReader(conn, maxProof))
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	proof, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || resp.Close || r.Buffered() > 0 {
		return nil, fmt.Errorf("it answers %s", resp.Status)
	}
	return proof, nil
}

const statusWidth = 100 // suits most terminals; status has more columns than other results

// now is when the gateway answered, by its own clock.
func (r *statusResult) now() time.Time {
	return r.StartedAt.Add(time.Duration(r.UptimeSeconds * float64(time.Second)))
}

func (a *app) printStatus(r *statusResult) {
	s, q, l := &r.Stats, r.Seq, r.Reload
	thousands := text.Thousands
	t := newTable("", "")
	t.add("target", r.Target)
	t.add("version", r.Version)
	t.add("up", ageText(r.now().Sub(r.StartedAt))+", since "+clock(r.StartedAt))
	t.add("store", r.Store)
	if l != nil && l.OK {
		t.add("config", fmt.Sprintf("%s, reloaded %s by %s", clean(r.Config), ago(l.At, r.now()), reloadCause(l)))
	} else {
		t.add("config", r.Config)
	}
	t.add("connections", fmt.Sprintf("%s, which watch %s workspaces", thousands(r.Connections), thousands(r.Watchers)))
	t.add("turns", fmt.Sprintf("%s kept of %s, %s ended because they were idle", thousands(r.Turns.Open), thousands(r.Turns.Limit), thousands(r.Turns.EndedIdle)))
	if q == nil {
		t.add("changes", "the database has not been reached yet")
	} else {
		t.add("changes", fmt.Sprintf("reported up to %d", *q))
	}
	manifests := styled{text: fmt.Sprintf("%d kept since the start, %d not kept, of which %d late", s.ManifestsKept, s.ManifestsNotKept, s.ManifestsKeptLate)}
	if s.ManifestsNotKept > 0 {
		manifests.style = caution
	}
	t.add("manifests", manifests)
	t.add("jobs", queueText(&r.Queue))
	t.addSome("hanging", words.If(s.SinkHanging > 0, fmt.Sprintf("%d calls of the store were abandoned and have not returned", s.SinkHanging)))
	t.addSome("hanging", words.If(s.ModelHanging > 0, fmt.Sprintf("%d calls of the model were abandoned and have not returned", s.ModelHanging)))
	a.heading(rule("gateway"))
	a.printTable(t)
	if l != nil && !l.OK {
		a.paint(bad, fmt.Sprintf("\nthe reload %s by %s failed, what was in force stays:\n", ago(l.At, r.now()), reloadCause(l)))
		for line := range strings.Lines(reloadError(l)) {
			a.printf("  %s\n", text.Sanitize(strings.TrimRight(line, "\n"), maxCell*2))
		}
	}
	a.printHealth(r)
	for _, host := range slices.Sorted(maps.Keys(r.Above)) {
		a.printAbove(host, r.Above[host])
	}
	a.printNotGranted(r.Plugins)
	if len(r.Issues) > 0 {
		a.heading(fmt.Sprintf("\nissues (%d)", len(r.Issues)))
	}
	for i := range r.Issues {
		issue := &r.Issues[i]
		a.paint(meaning(string(issue.Kind)), wrapped(issueText(issue, r.now()), 2))
		a.out.WriteString(wrapped("hint: "+issue.Hint, 4))
	}
}

func (a *app) printHealth(r *statusResult) {
	t := newTable("plugins", "plugin|state|>gen|tier|>restarts|>up|>p50 ms|>p99 ms|>memory|last error")
	for i := range r.Plugins {
		p := &r.Plugins[i]
		up := words.If(!p.StartedAt.IsZero(), ageText(r.now().Sub(p.StartedAt)))
		t.add(p.Plugin, mark(p.State), p.Generation, p.Tier, p.Restarts, up, quantile(&p.Took, p.Took.P50MS), quantile(&p.Took, p.Took.P99MS), memoryText(p.MemoryBytes), lastError(p.LastError, r.now()))
	}
	t.fit(statusWidth)
	a.printTable(t)
}

func quantile(l *runtime.Latency, ms float64) string { return words.If(l.Count > 0, words.Millis(ms)) }

// printNotGranted names, for each plugin that asks for more than it is granted, the keys that would grant it.
func (a *app) printNotGranted(plugins []runtime.PluginHealth) {
	var lines []string
	for i := range plugins {
		if lacks := notGranted(&plugins[i]); len(lacks) > 0 {
			lines = append(lines, plugins[i].Plugin+": to allow it, add to its grants "+strings.Join(lacks, ", "))
		}
	}
	if len(lines) > 0 {
		a.heading(fmt.Sprintf("\nasked for and not granted (%d)", len(lines)))
	}
	for _, line := range lines {
		a.out.WriteString(wrapped(line, 2))
	}
}

// notGranted returns what a plugin asks for and is not granted, as keys of the configuration with their entries.
func notGranted(p *runtime.PluginHealth) []string {
	if p.Requested == nil {
		return nil
	}
	var lacks []string
	for _, list := range []struct {
		key           string
		asked, grants []string
	}{
		{"contribute", p.Requested.Contribute, p.Grants.Contribute},
		{"tools", p.Requested.Tools, p.Grants.Tools},
		{"see", p.Requested.See, p.Grants.See},
	} {
		missing := slices.DeleteFunc(slices.Clone(list.asked), func(name string) bool { return phases.Allows(list.grants, name) })
		if len(missing) > 0 {
			lacks = append(lacks, list.key+": ["+strings.Join(missing, ", ")+"]")
		}
	}
	return lacks
}

func memoryText(n int64) string {
	const mib, gib = 1 << 20, 1 << 30
	switch {
	case n == 0:
		return ""
	case n < mib:
		return "< 1 MiB"
	case n < 10*gib:
		return text.Thousands(int(n/mib)) + " MiB"
	default:
		return text.Thousands(int(n/gib)) + " GiB"
	}
}

func lastError(e *runtime.LastError, now time.Time) string {
	if e == nil {
		return ""
	}
	return e.Code + " " + ago(e.At, now)
}

// ago is never negative: the clocks may be those of two machines.
func ago(at, now time.Time) string { return ageText(now.Sub(at)) + " ago" }

func issueText(t *gateway.Issue, now time.Time) string {
	about := "the hook " + t.Subscription
	switch {
	case t.Subscription != "":
	case t.Phase == phases.PhaseToolCall:
		about = "a tool of " + t.Plugin
	case t.Phase == phases.PhaseHostCall:
		about = "the model for " + t.Plugin
	default:
		about = "the plugin " + t.Plugin
	}
	when := ago(t.At, now)
	words := map[gateway.IssueKind]string{
		"quarantined":     "went into quarantine " + when,
		"backoff":         "failed " + when + " and is restarted",
		"breaker_open":    "is not called, its breaker is open, last error " + when,
		"failing":         "fails, last " + when,
		"degraded":        "is degraded since " + strings.TrimSuffix(when, " ago"),
		"hanging":         "is hanging",
		"busy":            "is busy",
		"sandbox_partial": "is less confined than it should be",
	}[t.Kind]
	line := about + " " + cmp.Or(words, string(t.Kind))
	if t.Code != "" && t.Code != string(t.Kind) {
		line += " (" + t.Code + ")"
	}
	if reason := strings.TrimSuffix(t.Reason, " ("+t.Code+")"); reason != "" {
		line += ": " + reason
	}
	if t.InARow > 0 {
		line += fmt.Sprintf("; runs failed in a row: %d", t.InARow)
	}
	if t.FailOpen > 0 {
		line += fmt.Sprintf("; phases that went on without: %d", t.FailOpen)
	}
	return line
}

func (a *app) printHooks(r *statusResult) {
	var tables []*table
	for i := range r.Hooks {
		h := &r.Hooks[i]
		if title := string(h.Phase); len(tables) == 0 || tables[len(tables)-1].title != title {
			tables = append(tables, newTable(title, "hook|state|>runs|>cached|>failed|>fail-open|>p50 ms|>p99 ms|last error"))
		}
		tables[len(tables)-1].add(cmp.Or(h.Subscription, h.Plugin), mark(hookState(h)), h.Runs, h.Cached, h.Failed, h.FailOpen, quantile(&h.Took, h.Took.P50MS), quantile(&h.Took, h.Took.P99MS), lastError(h.LastError, r.now()))
	}
	for _, t := range tables {
		t.fit(statusWidth)
		a.printTable(t)
	}
	printList(a, "phases", "phase|>dispatches|>failed|>cancelled|>p50 ms|>p99 ms|>max ms", r.Phases, func(p *runtime.PhaseRow) cells {
		return cells{p.Phase, p.Dispatches, p.Failed, p.Cancelled, p.Took.P50MS, p.Took.P99MS, p.Took.MaxMS}
	})
}

func hookState(h *runtime.HookRow) string {
	switch {
	case h.Off != "":
		return "off"
	case h.Breaker == "open" || h.Breaker == "half_open":
		return h.Breaker
	case h.FailedInARow > 0:
		return "failing"
	case h.Runs+h.Cached == 0:
		return "idle"
	default:
		return "ok"
	}
}

// fit narrows a table: the last column first, then the first one.
func (t *table) fit(width int) {
	if len(t.rows) == 0 {
		return
	}
	widths := widthsOf(append([][]string{t.header}, t.rows...))
	total := 2 * len(widths)
	for _, w := range widths {
		total += w
	}
	const least = 12
	for _, i := range []int{len(widths) - 1, 0} {
		most := max(least, widths[i]-max(0, total-width))
		total -= max(0, widths[i]-most)
		for _, row := range t.rows {
			if text.Chars(row[i]) > most {
				row[i] = text.Head(row[i], most-1) + "…"
			}
		}
	}
}

// wrapped breaks a text into lines of statusWidth, the first indented by first and the others by four blanks.
func wrapped(s string, first int) string {
	const longest, rest = 1000, 4
	words := strings.Join(strings.Fields(text.Sanitize(s, longest)), " ")
	return strings.Repeat(" ", first) + folded(words, statusWidth-max(first, rest), "\n"+strings.Repeat(" ", rest)) + "\n"
}
