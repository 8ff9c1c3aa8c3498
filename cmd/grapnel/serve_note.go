package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/peer"
)

// note is the file by which status and docs find a gateway of this user's, and make
// sure that it is that one. Each gateway has one, as long as it serves.
type note struct {
	// Schema is the version of this file.
	Schema int `json:"schema"`
	PID    int `json:"pid"`
	// Started is when the process started, as [peer.Started] says: a process that has
	// the number of a gateway which was killed is not that gateway.
	Started string `json:"started"`
	URL     string `json:"url"`
	Socket  string `json:"socket"`
	// Secret is known to this gateway alone, and to who may read this file.
	Secret []byte `json:"secret"`
	// SecretFile is where the token is that serve made; empty where it made none.
	SecretFile string    `json:"secret_file"`
	StartedAt  time.Time `json:"started_at"`

	path string
}

// noteSchema is the version that is written.
const noteSchema = 2

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
func (a *app) noteGateway(s *serving) *note {
	n := &note{
		Schema: noteSchema, PID: os.Getpid(), Started: peer.Started(os.Getpid()), URL: s.doors.url(), Socket: s.doors.socket,
		Secret: s.secret, SecretFile: s.access.secretFile, StartedAt: time.Now().UTC(),
	}
	n.sweep()
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
	if err := checkDir(dir); err != nil {
		return err
	}
	data, err := json.Marshal(n) //nolint:gosec // the file is for this user alone
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

// readNotes reads the notes of all gateways, the oldest first. It leaves out what is
// not a note, or could be read or written by another user: who writes notes says
// where tokens are sent.
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
		if n := readNote(path); n != nil {
			list = append(list, *n)
		}
	}
	slices.SortFunc(list, func(a, b note) int { return a.StartedAt.Compare(b.StartedAt) })
	return list, nil
}

// maxNote is more than a note has.
const maxNote = 16 << 10

// readNote reads one note; nil is what cannot be used.
func readNote(path string) *note {
	f, err := openOwn(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	n := note{path: path}
	err = json.NewDecoder(io.LimitReader(f, maxNote)).Decode(&n)
	if err != nil || n.Schema != noteSchema || len(n.Secret) == 0 || cmp.Or(n.URL, n.Socket) == "" {
		return nil
	}
	return &n
}

// sweep removes the notes of gateways that ended without doing so. One that names
// the address that is this gateway's now is of such a one.
func (n *note) sweep() {
	list, err := readNotes()
	if err != nil {
		return // nobody depends on it
	}
	for i := range list {
		if list[i].target() == n.target() || !list[i].lives() {
			_ = os.Remove(list[i].path)
		}
	}
}

// lives reports whether the gateway's process is still there.
func (n *note) lives() bool { return n.Started != "" && peer.Started(n.PID) == n.Started }

// at reports whether the note's gateway is the one that a target of a client names.
func (n *note) at(target string) bool {
	if path, ok := strings.CutPrefix(target, unixScheme); ok {
		abs, err := filepath.Abs(path)
		return err == nil && n.Socket == abs
	}
	u, err := url.Parse(target)
	own, bad := url.Parse(n.URL)
	return err == nil && bad == nil && n.URL != "" && (u.Scheme == "http" || u.Scheme == "ws") && u.Port() == own.Port() &&
		(u.Hostname() == own.Hostname() || isThisMachine(u.Hostname()) && isThisMachine(own.Hostname()))
}

// isThisMachine reports whether a host is a name of this machine for itself.
func isThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (addr.Unmap().IsLoopback() || addr.IsUnspecified())
}

// escapeGlob takes the meaning from characters of a folder's path.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
