package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/cli/autostart"
)

// TestSocketMovedByAnotherUser: another user listens at a socket that has come to belong to this user, in a directory of
// this user's. A hook asks the system who listens.
func TestSocketMovedByAnotherUser(t *testing.T) {
	t.Parallel()
	needRoot(t)

	shared, dir := openDir(t), openDir(t)
	if err := os.Chmod(shared, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	theirs, socket := filepath.Join(shared, "g.sock"), filepath.Join(dir, "g.sock")
	thief := asOther(t, "listen", "unix", theirs)
	if err := errors.Join(os.Rename(theirs, socket), os.Chown(socket, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if conn, err := autostart.Gateway(socket, "", 0); err == nil || !strings.Contains(err.Error(), "user 65534 listens there") {
		t.Errorf("connected: %v, %v", conn, err)
	}
	if got := thief.end(t); got != "ready\n" {
		t.Errorf("the other program got %s", got)
	}
}

// TestMCPWithABrokenConfiguration: a gateway that is started and ends says why.
func TestMCPWithABrokenConfiguration(t *testing.T) {
	t.Parallel()

	dir := openDir(t)
	config := filepath.Join(dir, "grapnel.yaml")
	put(t, config, "version: 1\nplugins: [{name: a, builtin: nothing-like-it}]\n")
	if code, _, errs := grapnelIn(t, dir, "mcp", "--config", config); code != exitUnable || !strings.Contains(errs, "grapnel.yaml:2:") || !strings.Contains(errs, "see hook.log beside ") {
		t.Errorf("%d %s", code, errs)
	}
}
