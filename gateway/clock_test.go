package gateway

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestTurnsWhileTheClockJumps: turns of one thread while the clock jumps back and forth
// by an hour and a day. Each is kept once, in the order of the turns, the log verifies,
// and no duration is negative.
func TestTurnsWhileTheClockJumps(t *testing.T) {
	t.Parallel()

	storetest.Both(t, storetest.NewPostgres, func(t *testing.T, dsn string) {
		log, trees := openLog(t, dsn)
		workspace(t, trees, "w")
		var nanos atomic.Int64
		nanos.Store(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano())
		now := func() time.Time { return time.Unix(0, nanos.Load()).UTC() }
		eng := engineWith(t, trees, log.Store, now, house())
		c := serve(t, Options{Tree: trees, Engine: eng, Log: log.Store, Now: now}).post(t, "")
		var ids []string
		for n, jump := range []time.Duration{0, time.Second, -time.Hour, time.Second, -24 * time.Hour, 0, 48 * time.Hour, -time.Hour} {
			at := now().Add(jump)
			nanos.Store(at.UnixNano())
			turn := object{"workspace_id": "w", "thread_id": "t", "turn_id": string(rune('a' + n)), "session_id": "s"}
			raw, bad := c.call(t, "turn/compile", object{"turn": turn})
			if bad != nil {
				t.Fatalf("turn %d: %+v", n, bad)
			}
			if bytes.Contains(raw, []byte(":-")) {
				t.Errorf("turn %d: something is negative: %s", n, raw)
			}
			done := decoded[runtime.Compiled](t, raw)
			if !done.Manifest.CreatedAt.Equal(at) || done.Manifest.Seq != uint64(n) {
				t.Errorf("turn %d: created at %s as %d", n, done.Manifest.CreatedAt, done.Manifest.Seq)
			}
			ids = append(ids, done.Manifest.ManifestID)
		}
		list := do[api.ManifestList](t, c, "manifest/list", object{"thread_id": "t"}).Manifests
		if len(list) != len(ids) {
			t.Fatalf("%d manifests of %d turns", len(list), len(ids))
		}
		for n, x := range list {
			if x.ManifestID != ids[n] {
				t.Errorf("turn %d is listed as %s", n, x.TurnID)
			}
		}
		if newest := do[manifest.Manifest](t, c, "manifest/get", object{"manifest_id": "latest"}); newest.ManifestID != ids[len(ids)-1] {
			t.Errorf("the latest is %s", newest.TurnID)
		}
		if v := do[manifest.Verdict](t, c, methodVerify, object{}); !v.OK || v.Checked != len(ids) {
			t.Errorf("verdict %+v", v)
		}
	})
}
