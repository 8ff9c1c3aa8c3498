package badplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/sdk"
)

// directoryAttacks leave a private directory behind that is hard to remove, or that
// leads whoever removes it elsewhere.
func directoryAttacks() map[string]func(*Program) error {
	own := func(name string) string { return filepath.Join(filepath.Dir(socket()), name) }
	all := map[string]func(p *Program) error{
		"dir-no-rights": func(*Program) error {
			return errors.Join(os.MkdirAll(own("a/b"), 0o700), os.Chmod(own("a/b"), 0), os.Chmod(own("a"), 0), os.Chmod(own("."), 0))
		},
		"dir-full":       func(*Program) error { return manyFiles(own("f"), 3000) },
		"dir-odd-names":  func(*Program) error { return oddNames(own(".")) },
		"dir-pipes":      func(*Program) error { return errors.Join(unix.Mkfifo(own("p"), 0o600), unix.Mkfifo(own("q"), 0)) },
		"dir-links":      func(p *Program) error { return manyLinks(own("."), p.arg("canary")) },
		"dir-hard-links": func(p *Program) error { return ignored(os.Link(p.arg("canary")+"/secret", own("hard"))) },
		"dir-sockets":    func(*Program) error { return manySockets(own("s")) },
		"dir-deep":       func(*Program) error { return deep(own("d"), 1500) },
		"dir-socket-swapped": func(p *Program) error {
			sockets, err := filepath.Glob(own("plugin*"))
			for _, path := range sockets {
				err = errors.Join(err, os.Remove(path), os.Symlink(p.arg("canary")+"/socket", path))
			}
			return err
		},
		"dir-removed": func(*Program) error { return ignored(os.RemoveAll(own("."))) },
		"dir-swapped": func(p *Program) error {
			return ignored(errors.Join(os.Rename(own("."), own(".")+".away"), os.Symlink(p.arg("canary"), own("."))))
		},
		"dir-mounted": func(*Program) error {
			return ignored(errors.Join(os.Mkdir(own("m"), 0o700), unix.Mount("tmpfs", own("m"), "tmpfs", 0, "size=1m")))
		},
		"dir-locked": func(p *Program) error {
			cmd := p.child("hostile", "dir-lock")
			cmd.SysProcAttr.Setsid = true
			return cmd.Start()
		},
		"dir-raced": func(p *Program) error {
			cmd := p.child("hostile", "dir-race")
			cmd.SysProcAttr.Setsid = true
			return cmd.Start()
		},
	}
	modes := map[string]func(*Program) error{
		"dir-lock": func(p *Program) error { return errors.Join(lock(own(".")), block(p)) },
		"dir-race": func(p *Program) error { return race(own("raced"), p.arg("canary")) },
	}
	for name, do := range all {
		modes[name] = func(p *Program) error {
			return p.serveAttack(func(context.Context, *sdk.Call) {
				if err := do(p); err != nil {
					p.did("failed " + err.Error())
					return
				}
				p.did("done")
			})
		}
	}
	return modes
}

// ignored is for attacks that the sandbox, or the lack of a right, prevents.
func ignored(error) error { return nil }

func manyFiles(dir string, n int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0); err != nil {
			return err
		}
	}
	return nil
}

func oddNames(dir string) error {
	for _, name := range []string{"a\nb", "\x1b[2J", "\xff\xfe", "-rf", "*", strings.Repeat("n", 255), "...", " "} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func manyLinks(dir, canary string) error {
	sub := filepath.Join(dir, "sub")
	return errors.Join(os.Symlink(canary, filepath.Join(dir, "l")), os.Symlink("/", filepath.Join(dir, "root")), os.Symlink("l2", filepath.Join(dir, "l2")),
		os.Mkdir(sub, 0o700), os.Symlink(canary, filepath.Join(sub, "l")), os.Symlink(canary+"/secret", filepath.Join(sub, "file")), os.Chmod(sub, 0))
}

func manySockets(prefix string) error {
	for i := range 50 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("%s%d", prefix, i)}); err != nil {
			return err
		}
	}
	return nil
}

// deep makes directories whose path is longer than any that the system takes.
func deep(dir string, levels int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, "longer", 0o700)
		}
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, "longer", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		at = next
	}
	return errors.Join(err, unix.Close(at))
}

// lock takes the lock by which hosts know directories that are in use.
func lock(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return ignored(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
}

// race swaps a directory for a link to the canary, back and forth.
func race(dir, canary string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		_ = os.MkdirAll(dir+"/x/y", 0o700)
		_ = os.Rename(dir, dir+".away")
		_ = os.Symlink(canary, dir)
		_ = os.Remove(dir)
		_ = os.Rename(dir+".away", dir)
	}
	return nil
}
