package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
)

// TestStoreExposed: a grant that covers the store's file is reported, whatever leads there.
func TestStoreExposed(t *testing.T) {
	t.Parallel()

	dir := realPath(t.TempDir())
	for _, name := range []string{"data", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("data", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		store, plugin, slot string
	}{
		{"sqlite:data/g.db", `grants: {read: ["./data"]}`, "grants.read"},
		{"sqlite:data/g.db", `grants: {read: ["./data/*"]}`, "grants.read"},
		{"sqlite:data/g.db", `grants: {read: ["./link"]}`, "grants.read"},
		{"sqlite:link/g.db", `grants: {read: ["./data"]}`, "grants.read"},
		{"sqlite:data/g.db", `grants: {write: ["./data/g.db-shm"]}`, "grants.write"},
		{"sqlite:data/g.db", `sandbox: T1, grants: {read: ["*"]}`, "grants.read"},
		{"sqlite:data/g.db", `sandbox: T2, grants: {write: ["*"]}`, "grants.write"},
		{"sqlite:data/g.db", `grants: {read: ["./other", "./data/g.d"]}`, ""},
		{"sqlite:data/g.db", `grants: {read: ["*"]}`, ""}, // T0 holds nobody
		{"postgres://127.0.0.1/x", `grants: {read: ["./data"]}`, ""},
	} {
		text := fmt.Sprintf("version: 1\nstore: %q\nplugins:\n  - {name: p, command: /bin/true, %s}\n", tt.store, tt.plugin)
		file := filepath.Join(dir, "grapnel.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		var slots []string
		for _, note := range StoreExposed(cfg) {
			slots = append(slots, note.Slot)
		}
		if slot := strings.Join(slots, ","); slot != tt.slot {
			t.Errorf("%s, %s: reported %q, want %q", tt.store, tt.plugin, slot, tt.slot)
		}
	}
}
