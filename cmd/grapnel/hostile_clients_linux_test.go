package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
)

// hostileRow is one thing that a hostile client does.
type hostileRow struct {
	name string
	do   func(t *testing.T, b *besieged)
	// database is set where the store is what is attacked: then it runs on PostgreSQL too.
	database bool
}

// TestHostileClients attacks gateways, row by row. After each row, or without [longSwitch] after
// every fifth, honest clients are served, what the rows took is given back, and the log of
// manifests is whole.
func TestHostileClients(t *testing.T) {
	if raceDetector {
		t.Skip("bounds on the gateway's memory and time do not hold under the race detector")
	}
	t.Parallel()

	rows := slices.Concat(sample(methodRows(t)), httpRows(), loadRows(), guessRows())
	for kind, store := range serveStores() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			b := besiege(t, store(t), 3)
			b.honest.ask(t, "turn/compile", object{"turn": object{"workspace_id": "acme", "thread_id": "t", "turn_id": "1"}})
			before := b.state(t)
			for i, row := range rows {
				if kind != "sqlite" && !row.database {
					continue
				}
				passed := t.Run(row.name, func(t *testing.T) {
					row.do(t, b)
				})
				if !passed {
					t.Logf("%s failed; the gateway said %s", row.name, b.errs.text.String())
				}
				if !passed || i%rounds(1, 5) == 0 {
					b.recovers(t, row.name, before)
				}
			}
			b.recovers(t, "the last row", before)
		})
	}
}

// sample returns every row of a long table with [longSwitch], else every fortieth.
func sample(rows []hostileRow) []hostileRow {
	var some []hostileRow
	for i := 0; i < len(rows); i += rounds(1, 40) {
		some = append(some, rows[i])
	}
	return some
}

// gatewayState is what must not grow.
type gatewayState struct{ goroutines, descriptors, memory int }

// state reads it of the process itself.
func (b *besieged) state(t *testing.T) gatewayState {
	t.Helper()
	resp, err := http.Get(b.target() + "/metrics") //nolint:noctx // the gateway is a child
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text := must(io.ReadAll(resp.Body))(t)
	value := func(name string) int {
		_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
		rest, _, _ = strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return int(n)
	}
	return gatewayState{value("go_goroutines"), value("process_open_fds"), memoryOf(t, b.cmd.Process.Pid, "VmRSS")}
}

// recovers fails the test unless the gateway is as it was before a row.
func (b *besieged) recovers(t *testing.T, row string, before gatewayState) {
	t.Helper()
	b.works(t)
	const slack = 40 // pools of the database, connections of honest clients that end
	now := b.state(t)
	for deadline := time.Now().Add(hostilePause); now.goroutines > before.goroutines+slack || now.descriptors > before.descriptors+slack; now = b.state(t) {
		if time.Now().After(deadline) {
			t.Errorf("%s leaves goroutines or descriptors behind: %+v, before %+v", row, now, before)
			break
		}
	}
	if now.memory > maxMemory {
		t.Errorf("%s leaves the gateway with %d MiB", row, now.memory)
	}
	var verdict struct {
		OK bool `json:"ok"`
	}
	if err := json.Unmarshal(b.honest.ask(t, "manifest/verify", object{}), &verdict); err != nil || !verdict.OK {
		t.Errorf("behind %s the log of manifests is broken: %v", row, err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// reply is one response of the gateway.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
		Data    struct {
			Code string `json:"code"`
		} `json:"data"`
	} `json:"error"`
}

// code is the error's; "ok" for a result.
func (r *reply) code() string {
	if r.Error == nil {
		return "ok"
	}
	return r.Error.Data.Code
}

// post sends a message with a token over a connection of its own, and returns the
// responses.
func (b *besieged) post(t *testing.T, token, message string) []reply {
	t.Helper()
	w := b.connect(t, "tcp")
	defer w.Close() //nolint:errcheck // it was read
	w.say(postOf(token, message))
	status, body := w.answer()
	if status == http.StatusNoContent {
		return nil
	}
	if status != http.StatusOK {
		t.Fatalf("%.100s got the status %d: %.200s", message, status, body)
	}
	return repliesOf(t, body)
}

// repliesOf decodes an answer.
func repliesOf(t *testing.T, body string) []reply {
	t.Helper()
	var all []reply
	err := json.Unmarshal([]byte(body), &all)
	if err != nil {
		all = make([]reply, 1)
		err = json.Unmarshal([]byte(body), &all[0])
	}
	if err != nil {
		t.Fatalf("no JSON-RPC: %v in %.200s", err, body)
	}
	return all
}

// rpcSchema is what a row needs to know of a value.
type rpcSchema struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// rpcMethod is what the gateway says of a method.
type rpcMethod struct {
	Right  string    `json:"right"`
	Params rpcSchema `json:"params"`
}

// rpcMethods are all of them.
func rpcMethods(t *testing.T) map[string]rpcMethod {
	t.Helper()
	text := must(gateway.Schema())(t)
	var doc struct {
		Methods map[string]rpcMethod `json:"methods"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Methods) < 30 {
		t.Fatalf("%d methods, %v", len(doc.Methods), err)
	}
	return doc.Methods
}

// paramsOf are params that a method could mean, about a workspace.
func paramsOf(m *rpcMethod, workspace string) object {
	where := object{"workspace_id": workspace, "thread_id": "t", "turn_id": "hostile", "session_id": "s"}
	known := object{
		"workspace_id": workspace, "id": "x", "name": "x", "title": "x", "folder_id": "x", "thread_id": "t", "content": "x", "turn": where, "context": where,
		"phase": "turn.pre_policy", "manifest_id": "latest", "a": "latest", "b": "latest", "handle": "x", "tool": "x", "plugin": "agentsdoc", "version": 1,
		"end": object{"status": "succeeded"},
	}
	params := object{}
	for name := range m.Params.Properties {
		if v, ok := known[name]; ok && (slices.Contains(m.Params.Required, name) || name == "workspace_id" || name == "turn" || name == "context") {
			params[name] = v
		}
	}
	return params
}

// poisons are values for any argument.
func poisons() []any {
	deep := any("x")
	for range 24 {
		deep = []any{deep}
	}
	return []any{
		nil, true, 0, -1, 1, 1e300, json.RawMessage("1e999999"), json.RawMessage("99999999999999999999999999"), json.RawMessage("-9223372036854775809"),
		"", " ", "../../../../etc/passwd", "/etc/passwd", "..\\..\\windows", "%2e%2e%2f", "x'; DROP TABLE manifests; --", "\u0001\u001b[31m\u007f", "\u202edrowssap\u200b", "💣é̴", "\u0085\u2028",
		"latest", "*", strings.Repeat("x", 100_000), strings.Repeat("💣", 20_000), strings.Repeat("\u0001", 20_000),
		[]any{},
		[]any{1, "x", nil},
		object{},
		object{"workspace_id": "acme"},
		object{"__proto__": 1, "": 2},
		deep, slices.Repeat([]any{0}, 50_000),
	}
}

// methodRows call each method with every argument missing, and poisoned in every way,
// with all rights. No call may fail inside, or hang.
func methodRows(t *testing.T) []hostileRow {
	t.Helper()
	methods := rpcMethods(t)
	var rows []hostileRow
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		m := methods[name]
		rows = append(rows, hostileRow{"arguments of " + name, func(t *testing.T, b *besieged) {
			base := paramsOf(&m, "scratch")
			for _, arg := range slices.Sorted(maps.Keys(m.Params.Properties)) {
				calls := make([]string, 0, 64)
				without := maps.Clone(base)
				delete(without, arg)
				calls = append(calls, rpcOf(name, without))
				for _, poison := range poisons() {
					with := maps.Clone(base)
					with[arg] = poison
					calls = append(calls, rpcOf(name, with))
					if inner, ok := base[arg].(object); ok { // where a turn is: one of its members
						for member := range inner {
							changed := maps.Clone(inner)
							changed[member] = poison
							with = maps.Clone(base)
							with[arg] = changed
							calls = append(calls, rpcOf(name, with))
						}
					}
				}
				for chunk := range slices.Chunk(calls, 10) {
					for i, r := range b.post(t, honestToken, "["+strings.Join(chunk, ",")+"]") {
						if code := r.code(); code == "internal" || code == "overloaded" {
							t.Errorf("%s: %s: %.300s", arg, code, chunk[i])
						}
					}
				}
			}
			huge := maps.Clone(base)
			for arg := range m.Params.Properties {
				if _, text := base[arg].(string); text || len(m.Params.Properties) == 1 {
					huge[arg] = strings.Repeat("x", 2<<20-2000) // the largest legal message
					break
				}
			}
			if r := b.post(t, honestToken, rpcOf(name, huge)); r[0].code() == "internal" {
				t.Errorf("the largest message: %s", r[0].Error.Message)
			}
		}, true})
	}
	return rows
}
