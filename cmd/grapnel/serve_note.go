package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// note is the file by which status and docs find a gateway of this user's. Each
// gateway has one, as long as it serves.
type note struct {
	// Schema is the version of this file.
	Schema int    `json:"schema"`
	PID    int    `json:"pid"`
	URL    string `json:"url"`
	Socket string `json:"socket"`
	// SecretFile is where the token is that serve made; empty where it made none.
	SecretFile string    `json:"secret_file"`
	StartedAt  time.Time `json:"started_at"`

	path string
}

// noteSchema is the version that is written.
const noteSchema = 1

// target is where the gateway is called: by the socket, if it has one, whose
// callers no rate holds back.
func (n *note) target() string {
	if n.Socket != "" {
		return unixScheme + n.Socket
	}
	return n.URL
}

// noteFolder is where notes are.
func noteFolder() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "grapnel"), nil
	}
	dir, err := dataFolder()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "run"), nil
}

// noteGateway writes the note of a gateway that is about to serve. A gateway that
// cannot be found by itself can still be called by its address, so that a note
// which cannot be written is told and is no error.
func (a *app) noteGateway(ctx context.Context, s *serving) *note {
	n := &note{
		Schema: noteSchema, PID: os.Getpid(), URL: s.doors.url(), Socket: s.doors.socket,
		SecretFile: s.access.secretFile, StartedAt: time.Now().UTC(),
	}
	n.sweep(ctx)
	if err := n.write(); err != nil {
		n.path = ""
		tellf(a.err, "grapnel: status will not find this gateway by itself: %s\n", err.Error())
	}
	return n
}

// write puts the note into its place, whole.
func (n *note) write() error {
	dir, err := noteFolder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	n.path = filepath.Join(dir, "gateway-"+strconv.Itoa(n.PID)+".json")
	// One that is there is of a process that had this number before.
	if err := os.Remove(n.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return createWhole(n.path, append(data, '\n'))
}

// remove takes the note away, and its folder, if that is empty then.
func (n *note) remove() {
	if n.path != "" {
		_ = os.Remove(n.path) // what stays is told as stale
		_ = os.Remove(filepath.Dir(n.path))
	}
}

// readNotes reads the notes of all gateways, the oldest first. What is none of
// ours is left out.
func readNotes() ([]note, error) {
	dir, err := noteFolder()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), "gateway-*.json"))
	if err != nil {
		return nil, err
	}
	var list []note
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("the note of a gateway cannot be read: %w", err)
		}
		n := note{path: path}
		if json.Unmarshal(data, &n) == nil && n.Schema == noteSchema && cmp.Or(n.URL, n.Socket) != "" {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b note) int { return a.StartedAt.Compare(b.StartedAt) })
	return list, nil
}

// sweep takes notes away of gateways that ended without doing so. One that speaks
// of the place that is this gateway's now is of such a one.
func (n *note) sweep(ctx context.Context) {
	list, err := readNotes()
	if err != nil {
		return // nobody depends on it
	}
	for i := range list {
		if list[i].target() == n.target() || !list[i].answers(ctx) {
			_ = os.Remove(list[i].path)
		}
	}
}

// answers reports whether somebody listens where the note says. A gateway begins
// to listen before it writes its note.
func (n *note) answers(ctx context.Context) bool {
	network, address := "unix", n.Socket
	if n.Socket == "" {
		u, err := url.Parse(n.URL)
		if err != nil {
			return false
		}
		network, address = "tcp", u.Host
	}
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// escapeGlob takes the meaning from characters of a folder's path.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
