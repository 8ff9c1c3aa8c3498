//go:build unix

package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// stages are modes in which a plugin hangs at one stage of its start: before the
// handshake, after it, before it describes itself, before it accepts its
// configuration; and one that comes up.
func stages() []string { return []string{"hang", "mute", "silent", "stuck", "good"} }

// soon waits for up to so long that a start is somewhere on its way. What is tested
// must hold at any moment; that it differs is the point.
func soon(rng *rand.Rand) {
	<-time.After(time.Duration(rng.IntN(150)) * time.Millisecond)
}

// rowReloadedWhileStarting is row 48: a reload that drops a plugin ends a start that is
// under way; so does the end of the reload that began it.
func rowReloadedWhileStarting(t *testing.T, b *processBench) {
	t.Helper()
	rng := rand.New(rand.NewPCG(48, 2))
	without := patient(bad(t, "good", "good"))
	for i, stage := range stages() {
		with := patient(bad(t, "good", "good"), bad(t, "bad", stage))
		eng := b.startWith(t, with, runtime.Options{WaitFor: runtime.WaitRequired})
		soon(rng)
		if err := eng.Reload(t.Context(), without); err != nil {
			t.Fatal(err)
		}
		b.awaitState(t, "bad", phases.PluginStopped, 2*i+1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(150))*time.Millisecond)
		err := eng.Reload(ctx, with)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: Reload with no time: %v", stage, err)
		}
		if err := eng.Reload(t.Context(), without); err != nil {
			t.Fatal(err)
		}
		b.awaitState(t, "bad", phases.PluginStopped, 2*i+2)
		b.awaitState(t, "good", phases.PluginReady, i+1) // a slow machine starts it after all that
		if row := rowOf(t, eng, "good"); row.Restarts != 0 {
			t.Errorf("the good plugin: %+v", row)
		}
		checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
		if rows := eng.Plugins(); len(rows) != 1 {
			t.Errorf("plugins: %+v", rows)
		}
		closeEngine(t, eng)
	}
}
