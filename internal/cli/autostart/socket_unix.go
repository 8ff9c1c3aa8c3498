//go:build unix

package autostart

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/owned"
)

// connect calls the system itself: the package net would bring its resolver, its poller and their threads, and the C
// library where there is one.
func connect(socket string) (io.ReadWriteCloser, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	conn := os.NewFile(uintptr(fd), socket)
	syscall.CloseOnExec(fd)
	limit := syscall.NsecToTimeval(connectTime.Nanoseconds())
	if err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket})
	}
	if err != nil {
		_ = conn.Close() // it has sent nothing
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
			return nil, absentError("no gateway listens at " + socket + ": " + err.Error())
		}
		return nil, errors.New("the gateway at " + socket + " takes no connection: " + err.Error())
	}
	if err := checkPeer(fd); err != nil {
		_ = conn.Close() // as above
		return nil, errors.New(socket + ": " + err.Error())
	}
	return conn, nil
}

// tryLock locks a file while it is open, unless another program has it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// start starts a gateway that goes on without this program, with a configuration if one is given, and waits until it
// answers. The caller holds the lock.
func start(socket, config string, until time.Time) (io.ReadWriteCloser, error) {
	program, err := gateway()
	if err != nil {
		return nil, err
	}
	log, err := owned.Open(filepath.Dir(socket)+"/hook.log", os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the gateway has its own
	args := []string{program, "serve", "--socket", socket}
	if config != "" {
		args = append(args, "--config", config)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // as above
	if _, err := log.WriteString(started + time.Now().UTC().Format(time.RFC3339) + "\n"); err != nil {
		return nil, err
	}
	p, err := os.StartProcess(program, args, &os.ProcAttr{
		Env: environment(), Files: []*os.File{null, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.New("the gateway could not be started: " + err.Error())
	}
	defer p.Release() //nolint:errcheck // it goes on by itself
	return await(socket, until, func() (string, bool) { return ended(p.Pid) })
}

// environment is this program's without the variable that names another configuration: a project can set it for the agent's
// hooks, and what they are to use stands in their arguments.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GRAPNEL_CONFIG=") })
}

// ended reports whether a child has ended, and how, without waiting for it.
func ended(pid int) (how string, is bool) {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	switch {
	case err != nil || got != pid:
		return "", false
	case status.Signaled():
		return signal + strconv.Itoa(int(status.Signal())), true
	}
	return "exit code " + strconv.Itoa(status.ExitStatus()), true
}

// gateway finds the program grapnel beside this one, or in the PATH.
func gateway() (string, error) {
	self, err := os.Executable()
	if err == nil {
		if beside := filepath.Dir(self) + "/grapnel"; isProgram(beside) {
			return beside, nil
		}
	}
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if program := dir + "/grapnel"; strings.HasPrefix(dir, "/") && isProgram(program) {
			return program, nil
		}
	}
	return "", errors.New("no gateway listens, and the program grapnel is neither beside this one nor in the PATH")
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
