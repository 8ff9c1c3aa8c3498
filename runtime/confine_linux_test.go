package runtime_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// needTier skips a test where a tier cannot be reached, and says why.
func needTier(t *testing.T, tier sandbox.Tier) {
	t.Helper()
	if err := sandbox.Probe().Reach(tier, sandbox.Policy{}, ""); err != nil {
		t.Skip(err)
	}
}

// TestGrantsAreInForce: what a plugin gets at through the whole engine is what its
// declaration grants, and the ledger says how it is confined.
func TestGrantsAreInForce(t *testing.T) {
	needTier(t, sandbox.T1)
	const refused = "refused: permission denied"
	for _, tt := range []struct {
		name    string
		sandbox string
		granted bool // the file, the place to write and the port
		tier    string
		// read, write and connect are what comes of the attempts.
		read, write, connect string
	}{
		{"nothing granted and no sandbox", "", false, "T0", "a secret", "written", "connected"},
		{"everything granted", "", true, "T1", "a secret", "written", "connected"},
		{"nothing granted", "T1", false, "T1", refused, refused, refused},
		{"in a control group", "T2", false, "T2", refused, refused, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.sandbox == "T2" {
				needTier(t, sandbox.T2)
			}
			b := newBench(t)
			secret, listener := b.scene(t)
			p := bad(t, "bad", "reach", "read="+secret, "write="+filepath.Dir(secret)+"/file", "connect="+listener)
			p.Sandbox = tt.sandbox
			if tt.granted {
				_, port, _ := strings.Cut(listener, ":")
				p.Grants.Read, p.Grants.Write, p.Grants.Net = []string{secret}, []string{filepath.Dir(secret)}, []string{"*:" + port}
			}
			eng := b.start(t, p)
			out := dispatch(t, eng, &phases.PrePromptCompileInput{})
			checkGood(t, eng, out)
			got := strings.Split(contentOf(out, "bad"), "\n")
			if diff := cmp.Diff(got, []string{"read: " + tt.read, "write: " + tt.write, "connect: " + tt.connect}); diff != "" {
				t.Errorf("attempts (-got +want):\n%s\n%v", diff, out.Diagnostics)
			}
			for _, row := range slices.Concat(out.Plugins, eng.Plugins()) {
				if want := map[string]string{"bad": tt.tier, "good": "T0"}[row.Plugin]; row.Tier != want {
					t.Errorf("the row of %s has the tier %q, want %q", row.Plugin, row.Tier, want)
				}
			}
		})
	}
}

// scene makes a file to read beside a place to write, and a listener.
func (b *processBench) scene(t *testing.T) (secret, listener string) {
	t.Helper()
	secret = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return secret, l.Addr().String()
}

// TestPartialSandboxIsTold: a granted path that is absent is no secret: the row, a
// diagnostic of each dispatch and the manifest say so.
func TestPartialSandboxIsTold(t *testing.T) {
	needTier(t, sandbox.T1)
	b := newBench(t)
	absent := filepath.Join(t.TempDir(), "absent")
	p := bad(t, "bad", "good")
	p.Grants.Read = []string{absent}
	eng := b.start(t, p)
	row := rowOf(t, eng, "bad")
	lacks := sandbox.Probe().Missing(sandbox.Policy{})
	if diff := cmp.Diff([][]string{row.AbsentPaths, row.TierLacks}, [][]string{{absent}, lacks}); diff != "" || row.Tier != "T1" {
		t.Errorf("tier %s; absent paths, lacks (-got +want):\n%s", row.Tier, diff)
	}
	turn := begin(t, eng)
	compiled := prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
	i := slices.IndexFunc(compiled.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == "sandbox_partial" })
	if i < 0 || compiled.Diagnostics[i].Plugin != "bad" || !strings.Contains(compiled.Diagnostics[i].Message, absent) {
		t.Errorf("diagnostics: %v", compiled.Diagnostics)
	}
	for _, row := range compiled.Manifest.Plugins {
		if row.Plugin == "bad" && (row.Tier != "T1" || !slices.Equal(row.AbsentPaths, []string{absent})) {
			t.Errorf("the manifest's row: %+v", row)
		}
	}
}

// TestConfinementIsRefused: a plugin never runs with less than its operator has
// written down; the error says where that is and what to do.
func TestConfinementIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"grants: {write: [/srv/x]}": `"p" wants the sandbox tier T1 and runs inside the host`,
		"sandbox: T2":               "run it as a process",
	} {
		cfg, err := config.Parse([]byte("version: 1\nplugins: [{name: p, "+text+"}]\n"), "grapnel.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = runtime.New(t.Context(), cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"p": vandal()}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "grapnel.yaml:2:3") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestUnreachableGroup: T2 needs a control group with what is limited; without one
// nothing starts, and the error says what to do.
func TestUnreachableGroup(t *testing.T) {
	needTier(t, sandbox.T1)
	limits := sandbox.Limits{Memory: 1 << 30}
	if _, _, err := sandbox.FindGroupBase("", limits); err == nil {
		t.Skip("control groups with memory are delegated here")
	}
	p := limited(bad(t, "p", "good"))
	p.Sandbox = "T2"
	_, err := runtime.New(t.Context(), &config.Config{Version: 1, Plugins: []config.Plugin{p}}, runtime.Options{})
	if err == nil || !strings.Contains(err.Error(), "Delegate=yes") || !strings.Contains(err.Error(), "T2 is not reachable here") {
		t.Errorf("error %v", err)
	}
}

// TestMutualTLS: host and plugin work as without certificates, and one who has
// none is not let in.
func TestMutualTLS(t *testing.T) {
	b := newBench(t)
	p := bad(t, "bad", "good")
	p.TLS = true
	eng := b.startWith(t, patient(p), runtime.Options{})
	if run := runOf(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), "bad.h"); run.State != phases.StateSucceeded {
		t.Errorf("run %s %s", run.State, run.Code)
	}
	sockets, err := filepath.Glob(filepath.Join(b.dir, "grapnel-*", "plugin[0-9]*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	conn, err := wire.Connect(sockets[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	if _, err := wire.Open(ctx, conn, wire.HostOptions{Incarnation: 99, Instance: "stranger"}); err == nil || ctx.Err() != nil {
		t.Errorf("without a certificate: %v", err)
	}
}

// TestRefusedMemory: who asks for far more at once than it may have is refused it
// by the system, and its end is one for memory.
func TestRefusedMemory(t *testing.T) {
	if alone(t) {
		return
	}
	needTier(t, sandbox.T1)
	b := newBench(t)
	p := limited(bad(t, "bad", "memory", "until="+strconv.Itoa(3<<10)))
	p.Sandbox = "T1"
	eng := b.start(t, p)
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if run := runOf(t, out, "bad.h"); run.Code != string(phases.CauseOOM) {
		t.Errorf("run %s %s, want failed oom", run.State, run.Code)
	}
	if ended := b.awaitState(t, "bad", phases.PluginBackoff, 1); ended.Code != string(phases.CauseOOM) {
		t.Errorf("%s: %s", ended.Code, ended.Message+ended.Detail)
	}
}

// TestContradictionInCode: a configuration that was not read from a file is
// checked like any other.
func TestContradictionInCode(t *testing.T) {
	p := bad(t, "p", "good")
	p.Sandbox, p.Grants.Read = "T0", []string{"/srv"}
	_, err := runtime.New(t.Context(), &config.Config{Version: 1, Plugins: []config.Plugin{p}}, runtime.Options{})
	if err == nil || !strings.Contains(err.Error(), "cannot tell them from others") || !strings.Contains(err.Error(), `"p"`) {
		t.Errorf("error %v", err)
	}
}
