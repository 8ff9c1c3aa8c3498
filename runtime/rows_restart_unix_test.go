//go:build unix

package runtime_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// script declares a plugin that is a script which runs the test binary in a mode,
// and returns a function that puts another script in its place.
func script(t *testing.T, mode string) (p config.Plugin, replace func(mode string) (sum string)) {
	t.Helper()
	p = bad(t, "bad", mode)
	path, program := filepath.Join(t.TempDir(), "plugin"), p.Path
	replace = func(mode string) string {
		t.Helper()
		text := fmt.Appendf(nil, "#!/bin/sh\nexec '%s' %s %s victim\n", program, asProgram, mode)
		if err := os.WriteFile(path+".new", text, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	p.SHA256 = replace(mode)
	p.Command, p.Path, p.Args = path, path, nil
	return p, replace
}

// rowReplacedOnDisk is row 19: the process that runs stays, its successor is refused
// as long as the file is another one, whether the process is to be recycled or has
// crashed.
func rowReplacedOnDisk(t *testing.T, b *processBench) {
	t.Helper()
	p, replace := script(t, "good")
	p.Limits.Recycle.Calls = 2
	eng := b.start(t, p)
	replace("tools")
	for range 3 {
		if run := runOf(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), "bad.h"); run.State != phases.StateSucceeded || run.Incarnation != 1 {
			t.Errorf("run = %+v", run)
		}
	}
	b.awaitState(t, "bad", phases.PluginDegraded, 1)
	row := rowOf(t, eng, "bad")
	if row.Code != "checksum_mismatch" || row.Restarts != 0 || row.Recycled != 0 || !strings.Contains(row.Message+row.Detail, "successor") {
		t.Errorf("plugin = %+v", row)
	}
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if run := runOf(t, out, "bad.h"); run.State != phases.StateSucceeded || run.Incarnation != 1 {
		t.Errorf("run = %+v", run)
	}
	kill(t, "victim")
	b.awaitState(t, "bad", phases.PluginQuarantined, 1)
	if row := rowOf(t, eng, "bad"); row.Code != "checksum_mismatch" {
		t.Errorf("plugin = %+v", row)
	}
	checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
	replace("good") // the operator has put it right
	if r, err := eng.Release(t.Context(), "bad"); err != nil || !r.Up() {
		t.Error(r, err)
	}
	b.awaitState(t, "bad", phases.PluginReady, 2)
}

// rowReplacedUnpinned is row 19 without a checksum: another build of the same plugin
// is taken as it is, one that describes itself differently needs a reload.
func rowReplacedUnpinned(t *testing.T, b *processBench) {
	t.Helper()
	p, replace := script(t, "good")
	p.SHA256 = ""
	eng := b.start(t, p)
	replace("crash") // the same hooks
	kill(t, "victim")
	b.awaitState(t, "bad", phases.PluginReady, 2)
	replace("tools")
	kill(t, "victim")
	b.awaitState(t, "bad", phases.PluginQuarantined, 1)
	if row := rowOf(t, eng, "bad"); row.Code != "description_changed" || !strings.Contains(row.Message+row.Detail, "reload") {
		t.Errorf("plugin = %+v", row)
	}
	checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
	p.Subscriptions = nil // of hooks that it has no more
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{p, bad(t, "good", "good")}}
	if err := eng.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if row := rowOf(t, eng, "bad"); row.State != phases.PluginReady {
		t.Errorf("plugin = %+v", row)
	}
}

// rowOverwhelmed is row 32: a plugin that works on one call at a time has a bounded
// queue. What is beyond it is refused at once, by the hook's policy; what waits is
// answered.
func rowOverwhelmed(t *testing.T, b *processBench) {
	t.Helper()
	hold := filepath.Join(t.TempDir(), "hold")
	p := bad(t, "bad", "told", "hold="+hold)
	p.Limits.Concurrency = 1
	eng := b.start(t, p)
	const more = 20
	runs := make(chan phases.Run, 1+runtime.MaxWaiting+more)
	var all sync.WaitGroup
	for range cap(runs) {
		all.Go(func() {
			out, err := eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePromptCompileInput{})
			if err != nil || contentOf(out, "good") == "" {
				t.Errorf("Dispatch: %v, sections %q", err, sectionIDs(out))
			}
			runs <- runOf(t, out, "bad.h")
		})
	}
	for range more { // nobody has answered yet
		if run := <-runs; run.State != phases.StateFailed || run.Code != "overloaded" {
			t.Fatalf("run = %+v", run)
		}
	}
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for range 1 + runtime.MaxWaiting {
		if run := <-runs; run.State != phases.StateSucceeded {
			t.Fatalf("run = %+v", run)
		}
	}
	stillUp(t, b, eng, nil)
}
