//go:build unix

package runtime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// secretRows are plugins that would pass for somebody else, or tell what is
// nobody's business.
func secretRows() []rowCase {
	return []rowCase{
		{row: 11, name: "forged-log", test: rowForgedLog},
		{row: 44, name: "nowhere", test: rowSecretNowhere},
		{row: 44, name: "printed", test: rowSecretPrinted},
		{row: 44, name: "rejected", test: rowSecretRejected},
		{row: 45, name: "stranger", test: rowStranger},
		{row: 45, name: "another-socket", test: rowAnotherSocket},
	}
}

// logTo writes everything, one JSON object a line. What it has written is read when the engine is closed.
func logTo(book *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug - 8}))
}

// rowForgedLog is row 11: whatever a plugin writes, its line is one line of the
// host's log, at the host's time, with the plugin's name, and its fields stand
// below that name.
func rowForgedLog(t *testing.T, b *processBench) {
	t.Helper()
	var book bytes.Buffer
	begin := time.Now()
	eng := b.startWith(t, patient(bad(t, "bad", "forge"), bad(t, "good", "good")), runtime.Options{Logger: logTo(&book)})
	checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
	b.awaitLine(t, "bad", "the end")
	closeEngine(t, eng)

	var got []string
	for line := range strings.Lines(book.String()) {
		var entry struct {
			Time   time.Time         `json:"time"`
			Level  string            `json:"level"`
			Msg    string            `json:"msg"`
			Plugin string            `json:"plugin"`
			Bad    map[string]string `json:"bad"`
		}
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&entry); err != nil {
			continue // the host's own lines have other fields
		}
		if strings.Count(line, `"msg":`) > 2 || strings.ContainsAny(strings.TrimSpace(line), "\x1b\n\r") || strings.Contains(line, `\u001b`) {
			t.Errorf("a line holds what it must not: %q", line)
		}
		if entry.Time.Before(begin.Add(-time.Second)) || entry.Time.After(time.Now().Add(time.Second)) {
			t.Errorf("the plugin's time: %s", line)
		}
		if entry.Plugin == "bad" {
			got = append(got, fmt.Sprintf("%s %s %s", entry.Level, entry.Msg, entry.Bad))
		}
	}
	want := []string{
		"INFO red plain map[]",
		"INFO over written map[]",
		`INFO time=1999-01-01T00:00:00Z level=ERROR msg="plugin" plugin=good state=quarantined map[]`,
		`WARN two level=ERROR msg=lines map[ab:x y level:ERROR msg:forged plugin:good time:1999]`,
		"ERROR slog map[plugin:good]",
		"INFO the end map[]",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("lines (-got +want):\n%s\nall: %s", diff, book.String())
	}
}

// The secrets of row 44: a value of the configuration, and a variable.
const (
	secretValue    = "hunter2-of-the-configuration"
	secretVariable = "hunter2-of-the-environment"
)

// secretive reads a configuration whose plugin "bad" is told a secret and has one
// in its environment, beside a good one that has neither.
func secretive(t *testing.T, args ...string) *config.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ROW_VALUE", secretValue)
	t.Setenv("ROW_VARIABLE", secretVariable)
	list, err := json.Marshal(append([]string{asProgram, "told"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse(fmt.Appendf(nil, `
version: 1
budgets: {turn: {time: 120s}, phases: {turn.pre_prompt_compile: {time: 60s}}}
plugins:
  - name: bad
    command: %[1]s
    args: %[2]s
    grants: {contribute: ['*'], sections: ['*']}
    env: {set: {TOKEN: '${ROW_VARIABLE}', GORACE: atexit_sleep_ms=0}}
    limits: {start: 30s}
    config: {answer: '${ROW_VALUE}'}
    subscriptions: {bad.h: {timeout: 30s}}
  - name: good
    command: %[1]s
    args: ['%[3]s', good]
    grants: {contribute: ['*'], sections: ['*']}
    env: {set: {GORACE: atexit_sleep_ms=0}}
    limits: {start: 30s}
    subscriptions: {good.h: {timeout: 30s}}
`, self, list, asProgram), "/row44.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// checkHidden looks for the secrets in what somebody may read.
func checkHidden(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{secretValue, secretVariable} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s tell it: %s", what, text[max(0, i-200):min(len(text), i+200)])
		}
	}
}

// everything is all that an engine says of itself.
func (b *processBench) everything(eng *runtime.Engine) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := fmt.Sprintf("%+v", b.events)
	if eng != nil {
		text += fmt.Sprintf("%+v %#v %+v %+v", eng.Plugins(), eng.Config(), eng.Diagnostics(), eng.Plan(""))
	}
	return text
}

// rowSecretNowhere is row 44: a secret reaches its plugin over the session, or in
// its own environment, and nothing and nobody else. No process may dump core.
func rowSecretNowhere(t *testing.T, b *processBench) {
	t.Helper()
	var book bytes.Buffer
	eng := b.startWith(t, secretive(t, "quiet=yes"), runtime.Options{Logger: logTo(&book)})
	out := prompted(t)(eng.CompileTurn(t.Context(), host(), runtime.CompileInput{}))
	files := processFiles(t, 2)
	for name, text := range files {
		if strings.HasSuffix(name, "/environ") && strings.Contains(text, "TOKEN=") {
			text = strings.Replace(text, "TOKEN="+secretVariable, "", 1) // the operator gave it to this one
		}
		if strings.HasSuffix(name, "/limits") && !coreIsOff(text) {
			t.Errorf("%s: core dumps are on", name)
		}
		checkHidden(t, name, text)
	}
	record, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(eng.Config())
	if err != nil {
		t.Fatal(err)
	}
	checkHidden(t, "the turn's records", fmt.Sprintf("%s %+v", record, out))
	checkHidden(t, "the printed configuration", string(plain))
	closeEngine(t, eng)
	checkHidden(t, "the engine's words", b.everything(eng))
	checkHidden(t, "the log", book.String())
}

// processFiles reads what anybody of this user can see of the plugins' processes.
func processFiles(t *testing.T, want int) map[string]string {
	t.Helper()
	files, dirs := map[string]string{}, 0
	for _, line := range processesOf(t, os.Getpid()) {
		dir, _, _ := strings.Cut(line, " ")
		dirs++
		for _, name := range []string{"cmdline", "environ", "limits"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Join(dir, name)] = string(text)
		}
	}
	if dirs != want {
		t.Fatalf("%d processes: %v", dirs, slices.Sorted(maps.Keys(files)))
	}
	return files
}

// coreIsOff reads /proc/PID/limits. One byte is as good as none: the limit of 0
// does not hold where dumps are piped to a program.
func coreIsOff(limits string) bool {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			fields := strings.Fields(rest)
			return len(fields) > 1 && fields[0] == fields[1] && (fields[0] == "0" || fields[0] == "1")
		}
	}
	return false
}

// rowSecretPrinted is row 44: a plugin that prints its own secret, in plain lines or in fields, whose error quotes it, such
// as an address with a password, and which dies with it on its lips, does not bring it into the log or the ledger.
func rowSecretPrinted(t *testing.T, b *processBench) {
	t.Helper()
	for arg, check := range map[string]func(*phases.Outcome){
		"fail=yes": func(out *phases.Outcome) {
			if got := runOf(t, out, "bad.h"); got.Code != "plugin_error" || !strings.Contains(fmt.Sprintf("%+v", out), "cannot reach ***@db") {
				t.Errorf("run = %+v, %+v", got, out)
			}
		},
		"die=yes": func(*phases.Outcome) {
			failed := b.awaitState(t, "bad", phases.PluginBackoff, 1)
			if !strings.Contains(failed.Message+failed.Detail, "dying of ***") {
				t.Errorf("the crash is told as %q", failed.Message+failed.Detail)
			}
		},
	} {
		var book bytes.Buffer
		eng := b.startWith(t, secretive(t, "print=yes", arg), runtime.Options{Logger: logTo(&book)})
		if line := b.awaitLine(t, "bad", "told {"); line != `told {"answer":"***"}` {
			t.Errorf("the line is %q", line)
		}
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		check(out)
		closeEngine(t, eng)
		checkHidden(t, "the ledger", fmt.Sprintf("%+v", out))
		checkHidden(t, "the engine's words", b.everything(eng))
		checkHidden(t, "the log", book.String())
	}
}

// rowSecretRejected is row 44: an error about the configuration does not show the
// secret that it is about, whether the schema refuses it or the plugin does.
func rowSecretRejected(t *testing.T, b *processBench) {
	t.Helper()
	for name, args := range map[string][]string{
		"type":    {`schema={"type":"object","properties":{"answer":{"type":"integer"}}}`},
		"choice":  {`schema={"type":"object","properties":{"answer":{"enum":["a","b"]}}}`},
		"pattern": {`schema={"type":"object","properties":{"answer":{"pattern":"^x$"}}}`},
		"plugin":  {"refuse=hunter2"},
	} {
		var book bytes.Buffer
		eng, err := runtime.New(t.Context(), secretive(t, args...), runtime.Options{Logger: logTo(&book), OnEvent: b.note})
		if err == nil {
			t.Fatalf("%s: it is accepted: %v", name, eng.Close(t.Context()))
		}
		if !strings.Contains(err.Error(), "row44.yaml") || !strings.Contains(err.Error(), "***") {
			t.Errorf("%s: the operator reads %q", name, err)
		}
		checkHidden(t, name+": the error", fmt.Sprintf("%v %+v %#v", err, err, err))
		checkHidden(t, name+": the log", book.String()+b.everything(nil))
	}
}

// rowStranger is row 45: another process of the same user that finds a plugin's
// socket is not let in, and the plugin goes on.
func rowStranger(t *testing.T, b *processBench) {
	t.Helper()
	eng := b.start(t, bad(t, "bad", "good"))
	found, err := filepath.Glob(filepath.Join(b.dir, "grapnel-*", "plugin*"))
	sockets := slices.DeleteFunc(found, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Mode()&os.ModeSocket == 0
	})
	if err != nil || len(sockets) != 2 {
		t.Fatalf("sockets %v of %v, %v", sockets, found, err)
	}
	for _, socket := range sockets {
		if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder is open to others: %v, %v", info.Mode(), err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), self, asProgram, "stranger", socket).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(said), "refused: ") {
			t.Errorf("the stranger says %s, %v", said, err)
		}
	}
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if got := runOf(t, out, "bad.h").State; got != phases.StateSucceeded {
		t.Errorf("after the stranger: %s", got)
	}
	stillUp(t, b, eng, out)
}

// rowAnotherSocket is row 45 the other way round: a plugin that names a socket on
// which somebody else listens gets no host, and the other one no visitor.
func rowAnotherSocket(t *testing.T, b *processBench) {
	t.Helper()
	path := filepath.Join(b.dir, "other")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan []byte, 1)
	go func() {
		var all []byte
		for {
			conn, err := l.Accept()
			if err != nil {
				heard <- all
				return
			}
			data, _ := io.ReadAll(conn)
			all = append(all, data...)
			_ = conn.Close()
		}
	}()
	eng := b.start(t, bad(t, "bad", "elsewhere", "socket="+path))
	if row := rowOf(t, eng, "bad"); row.State != phases.PluginQuarantined || row.Code != "unsafe_path" || !strings.Contains(row.Message+row.Detail, path) {
		t.Errorf("plugin = %+v", row)
	}
	checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
	closeEngine(t, eng)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if data := <-heard; len(data) > 0 {
		t.Errorf("the other one heard %q", data)
	}
}
