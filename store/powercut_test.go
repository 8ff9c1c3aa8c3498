package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// keepAll appends manifests, and keeps all else that belongs to a log beside them. It
// prints what is kept. Now and then the log is copied into the database, which takes
// much longer by itself.
func keepAll(o store.Options) func(ctx context.Context, dsn, arg string) error {
	return func(ctx context.Context, dsn, arg string) error {
		count, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		s, err := store.Open(ctx, dsn, o)
		if err != nil {
			return err
		}
		for n := range count {
			if err := keepOne(ctx, s, n); err != nil {
				return errors.Join(err, s.Close())
			}
			if n%9 == 8 {
				if _, err := s.Writer().ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
					return errors.Join(err, s.Close())
				}
			}
			if n%15 == 14 {
				fmt.Println("pruning")
				if _, err := s.Prune(ctx, store.Retention{Count: 6}, time.Now()); err != nil {
					return errors.Join(err, s.Close())
				}
			}
		}
		return s.Close()
	}
}

func keepOne(ctx context.Context, s *store.Store, n int) error {
	m := sample("w", "t"+strconv.Itoa(n%2), n)
	texts := sampleTexts()
	texts[0] = manifest.Text{Hash: manifest.Hash(m.TurnID, nil), Text: m.TurnID}
	m.Sections[0].Hash = texts[0].Hash
	if err := s.Append(ctx, m, texts); err != nil {
		return err
	}
	fmt.Println("manifest", m.ManifestID, m.Hash)
	at := epoch().Add(time.Duration(n) * time.Second)
	err := s.Report(ctx, manifest.Usage{ManifestID: m.ManifestID, Rounds: 1, ReportedAt: at})
	if err != nil {
		return err
	}
	fmt.Println("usage", m.ManifestID)
	key := phases.StateKey{WorkspaceID: "w", SessionID: strconv.Itoa(n % 5), Plugin: "p"}
	if _, err := s.PutState(ctx, key, json.RawMessage(strconv.Itoa(n))); err != nil {
		return err
	}
	fmt.Println("state", key.SessionID, n)
	// In a transaction that callers share.
	entry := store.ConversationEntry{ID: m.ManifestID, Entry: json.RawMessage(strconv.Itoa(n))}
	if err := s.AppendConversation(ctx, conversation(), "turn", at, []store.ConversationEntry{entry}); err != nil {
		return err
	}
	fmt.Println("entry", entry.ID)
	return nil
}

func conversation() store.Scope { return store.Scope{WorkspaceID: "w", ThreadID: "c"} }

// TestPowerCut records what a program that keeps a log asks of the disk, and cuts the
// power at any moment: what was not synced by then is kept, lost, or torn. The database
// is sound and the log whole each time. With SynchronousFull everything that was
// acknowledged is there; with SynchronousNormal the newest may be missing, and
// nothing in front of what is there.
func TestPowerCut(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	for name, newest := range map[string]bool{"keep full": true, "keep normal": false} {
		t.Run(name, func(t *testing.T) {
			if !newest && !storetest.Long() {
				t.Skip("GRAPNEL_LONG=1 runs it")
			}
			t.Parallel()

			lost := 0
			record(t, name, "16").cuts(t, func(t *testing.T, dsn string, printed []string) {
				missing, err := checkDisk(t, dsn, printed)
				if err != nil || newest && missing > 0 {
					t.Errorf("%d of %d acknowledged things are missing, %v", missing, len(printed), err)
				}
				lost += missing
			})
			if lost == 0 && !newest {
				t.Error("nothing was lost without waiting for the disk: nothing was cut")
			}
		})
	}
}

// checkDisk opens what a power cut has left, and returns how much is missing of what
// was acknowledged.
func checkDisk(t *testing.T, dsn string, printed []string) (missing int, err error) {
	t.Helper()
	s, err := store.Open(t.Context(), dsn, store.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var sound string
	if err := s.Writer().QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		return 0, fmt.Errorf("integrity: %s, %w", sound, err)
	}
	v, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
	if err != nil || !v.OK {
		return 0, fmt.Errorf("verdict %+v, %w", v, err)
	}
	if missing, err = missingOf(t, s, printed); err != nil {
		return missing, err
	}
	return missing, s.Append(t.Context(), sample("w", "t0", 1_000_000), nil)
}

// missingOf counts what was printed and is not there. It fails where something is
// missing in front of something that is there.
func missingOf(t *testing.T, s *store.Store, printed []string) (missing int, err error) {
	t.Helper()
	there := map[string]bool{}
	list, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		return 0, err
	}
	for _, x := range list {
		there["manifest "+x.ManifestID+" "+x.Hash] = true
		usage, err := s.Usage(t.Context(), x.ManifestID)
		if err != nil {
			return 0, err
		}
		there["usage "+x.ManifestID] = len(usage) == 1
	}
	c, err := s.Conversation(t.Context(), store.ConversationQuery{WorkspaceID: "w", ThreadID: "c", Limit: 1000, Bytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	for _, e := range c.Entries {
		there["entry "+e.ID] = true
	}
	pruned, looked, later := false, map[string]bool{}, ""
	for _, line := range slices.Backward(printed) {
		words := strings.Fields(line)
		kept := there[line]
		switch {
		case words[0] == "pruning": // what is older may be gone
			pruned = true
			continue
		case words[0] != "state" && pruned, words[0] == "state" && looked[words[1]]:
			continue
		case words[0] == "state":
			looked[words[1]] = true
			value, err := s.GetState(t.Context(), phases.StateKey{WorkspaceID: "w", SessionID: words[1], Plugin: "p"})
			if err != nil {
				return 0, err
			}
			n, errThere := strconv.Atoi(string(value))
			want, errWant := strconv.Atoi(words[2])
			kept = errThere == nil && errWant == nil && n >= want // or a later one that was not acknowledged
		}
		switch {
		case kept:
			later = line
		case later != "":
			return missing, fmt.Errorf("%q is missing, and %q behind it is there", line, later)
		default:
			missing++
		}
	}
	return missing, nil
}
