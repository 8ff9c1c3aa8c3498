//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestReadyWithoutItsDatabase: a gateway whose database was removed says so at
// /readyz, and names no path.
func TestReadyWithoutItsDatabase(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	db := filepath.Join(dir, "g.db")
	s := serveIn(t, dir, "--store", "sqlite:"+db)
	if err := os.Remove(db); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.target()+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	got := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable || got["database"] != "not_found" || got["hint"] == "" || got["engine"] != "ok" || len(got) != 4 {
		t.Errorf("%d %v", resp.StatusCode, got)
	}
	s.end(t, syscall.SIGTERM)
}
