//go:build unix

package autostart

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Connect connects to a socket of this user's, or root's: whoever else binds it first would decide. It calls the system
// itself: the package net would bring its resolver, its poller and their threads, and the C library where there is one.
func Connect(socket string) (io.ReadWriteCloser, error) {
	info, err := os.Lstat(socket)
	if err != nil {
		return nil, errors.New("no gateway listens at " + socket)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSocket == 0:
		return nil, errors.New(socket + " is no socket")
	case !ok || int(owner.Uid) != os.Getuid() && owner.Uid != 0:
		return nil, errors.New(socket + " belongs to another user")
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	conn := os.NewFile(uintptr(fd), socket)
	syscall.CloseOnExec(fd)
	err = errors.Join(bound(fd, syscall.SO_SNDTIMEO, connectTime), bound(fd, syscall.SO_RCVTIMEO, answerTime))
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket})
	}
	if err != nil {
		_ = conn.Close() // it has sent nothing
		return nil, errors.New("no gateway listens at " + socket + ": " + err.Error())
	}
	return conn, nil
}

// bound bounds the time of each call of one direction of a socket.
func bound(fd, option int, most time.Duration) error {
	limit := syscall.NsecToTimeval(most.Nanoseconds())
	return syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &limit)
}

// start starts a gateway that goes on without this program, with a configuration if one is given. Of several programs
// that find none, one starts it.
func start(socket, config string, wait time.Duration) error {
	dir := filepath.Dir(socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(socket+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // it holds nothing but the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil // another one starts it
	}
	program, err := gateway()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(dir+"/hook.log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the gateway has its own
	args := []string{program, "serve", "--socket", socket}
	if config != "" {
		args = append(args, "--config", config)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // as above
	p, err := os.StartProcess(program, args, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{null, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return errors.New("the gateway could not be started: " + err.Error())
	}
	defer p.Release()                //nolint:errcheck // it goes on by itself
	conn, err := await(socket, wait) // with the lock held: nobody starts a second one meanwhile
	if err != nil {
		return err
	}
	return conn.Close()
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
