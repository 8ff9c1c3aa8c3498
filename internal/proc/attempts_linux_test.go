package proc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scene is what a plugin finds on the machine that it attacks.
type scene struct {
	// Granted is a directory that it may read; Outside is one that it may not,
	// with the files of layOut.
	Granted string `json:"granted"`
	Outside string `json:"outside"`
	// Addresses on which the test listens.
	TCP      string `json:"tcp"`
	UDP      string `json:"udp"`
	Unix     string `json:"unix"`
	Abstract string `json:"abstract"`
	// Datagrams is a unix socket for those.
	Datagrams string `json:"datagrams"`
	// Shared is the number of a segment of System V memory.
	Shared int `json:"shared"`
	// Victim is a process of the same user. Its environment holds a secret.
	Victim int `json:"victim"`
	// HostFile is a file that the host has open, by its descriptor.
	HostFile int `json:"host_file"`
	// Stray is a descriptor that the host forgot to keep from its children.
	Stray int `json:"stray"`
	// Offset is beyond the longest file that is allowed, Files the number of
	// descriptors that is not.
	Offset int64 `json:"offset"`
	Files  int   `json:"files"`
}

// attempt is one thing that a plugin may try, and what comes of it without and with the
// sandbox. Rows with the same word twice are honest about what is not denied, or not by the
// sandbox.
type attempt struct {
	name, without, with string
	do                  func(s *scene) error
}

// asRoot is "ok" for root; other users may be denied it by the system's own settings.
const asRoot = "ok as root"

// attempts are all of them.
func attempts() []attempt {
	return slices.Concat(fileAttempts(), changeAttempts(), netAttempts(), processAttempts(), powerAttempts(), limitAttempts())
}

// linuxModes are the programs that exist on Linux only.
func linuxModes() map[string]func() {
	list := map[string]func(){
		"attempts":         func() { after(serve, tryAll) },
		"whoami":           func() { fmt.Println(os.Geteuid()) },
		"impostor":         func() { fmt.Println("1|1|unix|" + os.Args[3] + "|grpc|"); block() },
		"parent":           serveInChild,
		"escape":           func() { after(serve, escape) },
		"bomb":             func() { after(serve, bomb) },
		"twins":            func() { after(serve, twins) },
		"hoard":            func() { after(serve, hoard) },
		"clone-into-group": func() { after(serve, cloneIntoGroup) },
		"setuid": func() {
			after(serve, func(_, err *os.File) {
				out, e := exec.CommandContext(context.Background(), os.Args[3]+"/setuid", modeArg, "whoami").Output()
				_, _ = fmt.Fprintf(err, "setuid %s\n", strings.TrimSpace(string(out))+strings.TrimPrefix(fmt.Sprint(e), "<nil>"))
			})
		},
		"user-host":      userHost,
		"threads":        func() { after(serve, attackThreads) },
		"fugitive":       func() { startFugitive(); serve() },
		"flee":           flee,
		"vandal":         func() { after(serve, vandal) },
		"vandal-starter": startVandal,
		"vandal-itself":  vandalise,
	}
	maps.Copy(list, hostileModes())
	maps.Copy(list, unkillableModes())
	return list
}

// tryAll makes all attempts and tells what came of each: "ok" or the name of
// the error.
func tryAll(_, err *os.File) {
	var s scene
	if e := json.Unmarshal([]byte(os.Args[3]), &s); e != nil {
		panic(e)
	}
	for _, a := range attempts() {
		_, _ = fmt.Fprintf(err, "attempt %s: %s\n", a.name, outcome(a.do(&s)))
	}
}

// noError is nil for 0.
func noError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// outcome puts an error into one word.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// own is a path in the plugin's private directory.
func own(name string) string { return filepath.Join(os.Getenv("TMPDIR"), name) }

// read reads a file that must hold the secret.
func read(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), "secret") {
		return fmt.Errorf("holds %q", data)
	}
	return err
}

// fileAttempts try to read what was not granted.
func fileAttempts() []attempt {
	return []attempt{
		{"read a granted file", "ok", "ok", func(s *scene) error { return read(s.Granted + "/public-secret") }},
		{"read a secret", "ok", "EACCES", func(s *scene) error { return read(s.Outside + "/secret") }},
		{"list its directory", "ok", "EACCES", func(s *scene) error { _, err := os.ReadDir(s.Outside); return err }},
		{"read by a symbolic link in a granted directory", "ok", "EACCES", func(s *scene) error { return read(s.Granted + "/link") }},
		{"read by a symbolic link of its own", "ok", "EACCES", func(s *scene) error {
			_ = os.Symlink(s.Outside+"/secret", own("link"))
			return read(own("link"))
		}},
		{"read by a hard link that lies in a granted directory", "ok", "ok", func(s *scene) error { return read(s.Granted + "/hard") }},
		{"read by a hard link of its own", "ok", "EXDEV", func(s *scene) error {
			if err := os.Link(s.Outside+"/secret", own("hard")); err != nil {
				return err
			}
			return read(own("hard"))
		}},
		{"read by /proc/self/root", "ok", "EACCES", func(s *scene) error { return read("/proc/self/root" + s.Outside + "/secret") }},
		{"read by the host's /proc/PID/root", asRoot, "EACCES", func(s *scene) error {
			return read(fmt.Sprintf("/proc/%d/root%s/secret", os.Getppid(), s.Outside))
		}},
		{"read by the host's /proc/PID/fd", asRoot, "EACCES", func(s *scene) error {
			return read(fmt.Sprintf("/proc/%d/fd/%d", os.Getppid(), s.HostFile))
		}},
		{"read by a descriptor that the host forgot", "EBADF", "EBADF", func(s *scene) error {
			_, err := unix.Pread(s.Stray, make([]byte, 10), 0)
			return err
		}},
		{"read by a file handle", asRoot, "EPERM", func(s *scene) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Outside+"/file", 0)
			if err != nil {
				return err
			}
			at, err := unix.Open(s.Granted, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			fd, err := unix.OpenByHandleAt(at, handle, unix.O_RDONLY)
			_ = unix.Close(fd)
			return err
		}},
		{"execute a program that was not granted", "ok", "EACCES", func(s *scene) error {
			return exec.CommandContext(context.Background(), s.Outside+"/program").Run()
		}},
		{"see that a file is there", "ok", "ok", func(s *scene) error { _, err := os.Stat(s.Outside + "/secret"); return err }},
		{"watch a directory that it may not list", "ok", "ok", func(s *scene) error {
			fd, err := unix.InotifyInit()
			if err != nil {
				return err
			}
			_, err = unix.InotifyAddWatch(fd, s.Outside, unix.IN_CREATE)
			return errors.Join(err, unix.Close(fd))
		}},
		{"read the kernel's memory layout", "ok", "EACCES", func(*scene) error { _, err := os.ReadFile("/proc/kallsyms"); return err }},
	}
}

// changeAttempts try to change files.
func changeAttempts() []attempt {
	create := func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }
	return []attempt{
		{"write in its own directory", "ok", "ok", func(*scene) error { return create(own("file")) }},
		{"write in a directory that it may read", "ok", "EACCES", func(s *scene) error { return create(s.Granted + "/new") }},
		{"overwrite a file", "ok", "EACCES", func(s *scene) error { return create(s.Outside + "/file") }},
		{"make a file", "ok", "EACCES", func(s *scene) error { return create(s.Outside + "/new") }},
		{"cut a file", "ok", "EACCES", func(s *scene) error { return os.Truncate(s.Outside+"/long", 1) }},
		{"move a file out of its directory", "ok", "EACCES", func(s *scene) error {
			_ = create(own("mine"))
			return os.Rename(own("mine"), s.Outside+"/moved")
		}},
		{"move a file into its directory", "ok", "EACCES", func(s *scene) error { return os.Rename(s.Outside+"/stolen", own("stolen")) }},
		{"remove a file", "ok", "EACCES", func(s *scene) error { return os.Remove(s.Outside + "/removed") }},
		{"make a directory", "ok", "EACCES", func(s *scene) error { return os.Mkdir(s.Outside+"/directory", 0o700) }},
		{"make a symbolic link", "ok", "EACCES", func(s *scene) error { return os.Symlink("/", s.Outside+"/newlink") }},
		{"make a pipe", "ok", "EACCES", func(s *scene) error { return unix.Mkfifo(s.Outside+"/pipe", 0o600) }},
		{"make a device in its own directory", asRoot, "EACCES", func(*scene) error {
			return unix.Mknod(own("null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}},
		{"take a lease on a file that it may read", "ok", "EACCES", func(s *scene) error {
			f, err := os.Open(s.Granted + "/public-secret")
			if err != nil {
				return err
			}
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			return errors.Join(err, f.Close())
		}},
		{"change a file's mode", "ok", "ok", func(s *scene) error { return os.Chmod(s.Outside+"/file", 0o640) }},
	}
}

// processAttempts try to harm other processes.
func processAttempts() []attempt {
	proc := func(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
	return []attempt{
		{"read the environment of another process", "ok", "EACCES", func(s *scene) error { return read(proc(s.Victim, "environ")) }},
		{"read the arguments of another process", "ok", "EACCES", func(s *scene) error { _, err := os.ReadFile(proc(s.Victim, "cmdline")); return err }},
		{"open the memory of another process", asRoot, "EACCES", func(s *scene) error {
			f, err := os.OpenFile(proc(s.Victim, "mem"), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			return f.Close()
		}},
		{"trace another process", asRoot, "EPERM", func(s *scene) error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := unix.PtraceSeize(s.Victim); err != nil {
				return err
			}
			_ = unix.PtraceInterrupt(s.Victim)
			_, err := unix.Wait4(s.Victim, nil, unix.WALL, nil)
			return errors.Join(err, unix.PtraceDetach(s.Victim))
		}},
		{"trace the host", asRoot, "EPERM", func(*scene) error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err := unix.PtraceSeize(os.Getppid())
			if err == nil {
				_ = unix.PtraceInterrupt(os.Getppid())
				_, _ = unix.Wait4(os.Getppid(), nil, unix.WALL, nil)
				err = unix.PtraceDetach(os.Getppid())
			}
			return err
		}},
		{"take a descriptor of another process", asRoot, "EPERM", func(s *scene) error {
			pidfd, err := unix.PidfdOpen(s.Victim, 0)
			if err != nil {
				return err
			}
			fd, err := unix.PidfdGetfd(pidfd, 0, 0)
			_ = unix.Close(fd)
			return err
		}},
		{"signal the host", "ok", "EPERM", func(*scene) error { return unix.Kill(os.Getppid(), 0) }},
		{"kill another process by the readiness of a pipe", "ok", "it lives", func(s *scene) error { return killByPipe(s.Victim) }},
		{"kill another process", "ok", "EPERM", func(s *scene) error { return unix.Kill(s.Victim, unix.SIGKILL) }},
		{"attach shared memory of another process", "ok", "ENOSYS", func(s *scene) error {
			data, err := unix.SysvShmAttach(s.Shared, 0, 0)
			if err != nil {
				return err
			}
			return unix.SysvShmDetach(data)
		}},
		{"remove shared memory of another process", "ok", "ENOSYS", func(s *scene) error {
			_, err := unix.SysvShmCtl(s.Shared, unix.IPC_RMID, nil)
			return err
		}},
		{"open a message queue", "ok", "ENOSYS", func(*scene) error {
			name, err := unix.BytePtrFromString(fmt.Sprintf("grapnel-test-%d", os.Getpid()))
			if err != nil {
				return err
			}
			fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			_, _, errno = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
			return errors.Join(unix.Close(int(fd)), noError(errno))
		}},
	}
}

// killByPipe has the kernel kill a process when a pipe becomes readable. It says
// nothing of a refusal; a handle becomes readable when its process has ended.
func killByPipe(pid int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	fd := r.Fd()
	for _, c := range []struct{ command, arg int }{{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(fd, c.command, c.arg); err != nil {
			return err
		}
	}
	_, err = w.WriteString("x")
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 100)
	if err == nil && n == 0 {
		err = errors.New("it lives")
	}
	return errors.Join(err, r.Close(), w.Close(), unix.Close(handle))
}

// powerAttempts try to use the powers of root.
func powerAttempts() []attempt {
	return []attempt{
		{"run a set-user-ID program", asRoot, "gained nothing", func(s *scene) error {
			out, err := exec.CommandContext(context.Background(), s.Granted+"/setuid", modeArg, "whoami").Output()
			if err == nil && strings.TrimSpace(string(out)) == strconv.Itoa(os.Geteuid()) {
				return errors.New("gained nothing")
			}
			return err
		}},
		{"rename the machine", asRoot, "EPERM", func(*scene) error {
			name, err := os.Hostname()
			if err != nil {
				return err
			}
			return unix.Sethostname([]byte(name))
		}},
		{"mount a file system", asRoot, "EPERM", func(*scene) error {
			if err := os.Mkdir(own("mount"), 0o700); err != nil {
				return err
			}
			if err := unix.Mount("none", own("mount"), "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.Unmount(own("mount"), 0)
		}},
		{"change the root", asRoot, "EPERM", func(*scene) error { return unix.Chroot("/") }},
		{"use the user's keys", "ok", "EPERM", func(*scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return err
		}},
		{"make a namespace of users", asRoot, "EPERM", func(*scene) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			cmd := exec.CommandContext(context.Background(), self, modeArg, "whoami")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
			return cmd.Run()
		}},
		{"read the kernel's log", asRoot, "EPERM", func(*scene) error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 16)); return err }},
		{"push keystrokes into a terminal", "ENOTTY", "EPERM", func(*scene) error { return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x') }},
		{"get ahead of others", asRoot, "EACCES", func(*scene) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
	}
}

// limitAttempts try to use up the machine.
func limitAttempts() []attempt {
	return []attempt{
		{"write a long file", "ok", "EFBIG", func(s *scene) error {
			signal.Ignore(syscall.SIGXFSZ)
			f, err := os.Create(own("long"))
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("x"), s.Offset)
			return errors.Join(err, f.Close())
		}},
		{"open many files", "ok", "EMFILE", func(s *scene) error {
			var open []int
			var err error
			for range s.Files {
				var fd int
				if fd, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
					break
				}
				open = append(open, fd)
			}
			for _, fd := range open {
				_ = unix.Close(fd)
			}
			return err
		}},
		{"fill the memory", "ok", "ENOMEM", func(*scene) error {
			data, err := unix.Mmap(-1, 0, 4<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
			if err != nil {
				return err
			}
			return unix.Munmap(data)
		}},
		{"dump core", "no", "no", func(*scene) error {
			var limit unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
				return err
			}
			if limit.Max <= 1 {
				return errors.New("no")
			}
			return nil
		}},
	}
}
