package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// ErrNoPostgres says that no PostgreSQL server is installed.
var ErrNoPostgres = errors.New("no PostgreSQL server is installed: initdb and pg_ctl were found neither by pg_config nor in the usual directories")

// Postgres is a server in a temporary directory, reached by a socket there, without a port. If this process is root,
// it runs as the user postgres, or nobody. It ends with this process, however that ends.
type Postgres struct {
	bin, dir string
	count    atomic.Int64
	guard    *exec.Cmd
	alive    *os.File // closed when this process ends: the guard waits for that
}

// superuser is the databases' user.
const superuser = "grapnel"

// StartPostgres starts a server, which must be stopped.
func StartPostgres(ctx context.Context) (*Postgres, error) {
	bin, err := postgresPrograms(ctx)
	if err != nil {
		return nil, err
	}
	// A socket's path must be short, so this is not t.TempDir.
	dir, err := os.MkdirTemp("", "grapnel-pg-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{bin: bin, dir: dir}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.dismiss(), os.RemoveAll(dir))
	}
	return p, nil
}

// watch starts the guard: a shell that stops the server and removes its files when its input
// ends, as when this process is killed.
func (p *Postgres) watch() error {
	const script = `trap '' HUP INT TERM; cd /; read -r _; "$1" -D "$2/data" -m immediate -w stop >/dev/null 2>&1; rm -rf "$2"`
	input, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = input.Close() }() // the guard has its own
	p.alive = alive
	cmd := exec.Command("sh", "-c", script, "sh", filepath.Join(p.bin, "pg_ctl"), p.dir) //nolint:gosec,noctx // it outlives every context
	cmd.Stdin, cmd.Stderr = input, os.Stderr
	if err = asOrdinaryUser(cmd); err == nil {
		err = cmd.Start()
	}
	if err == nil {
		p.guard = cmd
	}
	return err
}

// dismiss lets the guard do its work, and waits for its end.
func (p *Postgres) dismiss() error {
	var errs []error
	if p.alive != nil {
		errs = append(errs, p.alive.Close())
	}
	if p.guard != nil {
		errs = append(errs, p.guard.Wait())
	}
	return errors.Join(errs...)
}

func postgresPrograms(ctx context.Context) (string, error) {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/pgsql/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		slices.Reverse(found) // the newest first
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		_, initdb := os.Stat(filepath.Join(dir, "initdb"))
		if _, err := os.Stat(filepath.Join(dir, "pg_ctl")); err == nil && initdb == nil {
			return dir, nil
		}
	}
	return "", ErrNoPostgres
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// start makes a cluster and starts the server, without fsync, which is slow.
func (p *Postgres) start(ctx context.Context) error {
	err := giveToServer(p.dir)
	if err == nil {
		err = p.watch()
	}
	if err == nil {
		err = p.run(ctx, "initdb", "-D", p.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8")
	}
	if err == nil {
		err = p.Restart(ctx)
	}
	return err
}

// Restart starts a server that was stopped or crashed.
func (p *Postgres) Restart(ctx context.Context) error {
	options := fmt.Sprintf("-c listen_addresses= -c unix_socket_directories=%s -c max_connections=200 -c fsync=off", p.dir)
	return p.run(ctx, "pg_ctl", "-D", p.data(), "-l", filepath.Join(p.dir, "log"), "-w", "-t", "60", "-o", options, "start")
}

// Crash kills the server.
func (p *Postgres) Crash(ctx context.Context) error {
	return p.run(ctx, "pg_ctl", "-D", p.data(), "-m", "immediate", "-w", "stop")
}

// Stop ends the server and removes its files.
func (p *Postgres) Stop(ctx context.Context) error {
	return errors.Join(p.run(ctx, "pg_ctl", "-D", p.data(), "-m", "fast", "-w", "stop"), p.dismiss(), os.RemoveAll(p.dir))
}

// NewDSN makes an empty database and returns its DSN.
func (p *Postgres) NewDSN(ctx context.Context) (string, error) {
	name := fmt.Sprintf("test%d", p.count.Add(1))
	return p.DSN(name), p.run(ctx, "createdb", "-h", p.dir, "-U", superuser, name)
}

// DSN returns the DSN of a database.
func (p *Postgres) DSN(name string) string {
	return "postgres:///" + name + "?" + url.Values{"host": {p.dir}, "user": {superuser}, "sslmode": {"disable"}}.Encode()
}

// Dir returns the directory of the server's files.
func (p *Postgres) Dir() string { return p.dir }

// Socket returns the path of the server's socket, for tests that proxy it.
func (p *Postgres) Socket() string { return filepath.Join(p.dir, ".s.PGSQL.5432") }

func (p *Postgres) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, program), args...) //nolint:gosec // the server's own programs
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=" + p.dir, "TZ=UTC"}
	if err := asOrdinaryUser(cmd); err != nil {
		return err
	}
	// To a file: the server inherits it and would keep a pipe open.
	out, err := os.CreateTemp(p.dir, program+"-")
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	text, readErr := os.ReadFile(out.Name())
	if err = errors.Join(err, readErr, out.Close()); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, text)
	}
	return nil
}
