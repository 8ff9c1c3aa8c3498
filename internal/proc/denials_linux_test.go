package proc_test

// denial is one row of the table of what the sandbox denies: the outcome of an
// attempt without and with it. Some attempts need root to succeed at all, or are
// denied to others by the system's own settings.
type denial struct {
	attempt, without, with string
	root                   bool
}

// denials is that table. Rows with the same word twice are in it to be honest
// about what is not denied, or not by the sandbox.
func denials() []denial {
	return []denial{
		{attempt: "read a granted file", without: "ok", with: "ok"},
		{attempt: "read a secret", without: "ok", with: "EACCES"},
		{attempt: "list its directory", without: "ok", with: "EACCES"},
		{attempt: "read by a symbolic link in a granted directory", without: "ok", with: "EACCES"},
		{attempt: "read by a symbolic link of its own", without: "ok", with: "EACCES"},
		{attempt: "read by a hard link that lies in a granted directory", without: "ok", with: "ok"},
		{attempt: "read by a hard link of its own", without: "ok", with: "EXDEV"},
		{attempt: "read by /proc/self/root", without: "ok", with: "EACCES"},
		{attempt: "read by the host's /proc/PID/root", without: "ok", with: "EACCES", root: true},
		{attempt: "read by the host's /proc/PID/fd", without: "ok", with: "EACCES", root: true},
		{attempt: "read by a descriptor that the host forgot", without: "EBADF", with: "EBADF"},
		{attempt: "read by a file handle", without: "ok", with: "EPERM", root: true},
		{attempt: "execute a program that was not granted", without: "ok", with: "EACCES"},
		{attempt: "see that a file is there", without: "ok", with: "ok"},
		{attempt: "watch a directory that it may not list", without: "ok", with: "ok"},
		{attempt: "read the kernel's memory layout", without: "ok", with: "EACCES"},

		{attempt: "write in its own directory", without: "ok", with: "ok"},
		{attempt: "write in a directory that it may read", without: "ok", with: "EACCES"},
		{attempt: "overwrite a file", without: "ok", with: "EACCES"},
		{attempt: "make a file", without: "ok", with: "EACCES"},
		{attempt: "cut a file", without: "ok", with: "EACCES"},
		{attempt: "move a file out of its directory", without: "ok", with: "EACCES"},
		{attempt: "move a file into its directory", without: "ok", with: "EACCES"},
		{attempt: "remove a file", without: "ok", with: "EACCES"},
		{attempt: "make a directory", without: "ok", with: "EACCES"},
		{attempt: "make a symbolic link", without: "ok", with: "EACCES"},
		{attempt: "make a pipe", without: "ok", with: "EACCES"},
		{attempt: "make a device in its own directory", without: "ok", with: "EACCES", root: true},
		{attempt: "take a lease on a file that it may read", without: "ok", with: "EACCES"},
		{attempt: "change a file's mode", without: "ok", with: "ok"},

		{attempt: "connect by TCP", without: "ok", with: "EACCES"},
		{attempt: "listen on a TCP port", without: "ok", with: "EACCES"},
		{attempt: "connect by a protocol that is nearly TCP", without: "ok", with: "EACCES"},
		{attempt: "send a datagram", without: "ok", with: "EACCES"},
		{attempt: "speak to the kernel's network", without: "ok", with: "EACCES"},
		{attempt: "connect to a unix socket by its path", without: "ok", with: "EACCES"},
		{attempt: "send a datagram to a unix socket by its path", without: "ok", with: "EACCES"},
		{attempt: "send one by a pair of its own", without: "ok", with: "EACCES"},
		{attempt: "connect to an abstract unix socket", without: "ok", with: "EACCES"},
		{attempt: "connect to a unix socket of its own", without: "ok", with: "EACCES"},
		{attempt: "connect by TCP with the first data", without: "ok", with: "EACCES"},
		{attempt: "connect by TCP with the first message", without: "ok", with: "EACCES"},
		{attempt: "connect by TCP after an option", without: "ok", with: "EACCES"},
		{attempt: "connect by TCP from a socket of the other version", without: "ok", with: "EACCES"},
		{attempt: "listen on a TCP port without binding", without: "ok", with: "EACCES"},
		{attempt: "make a ring that makes sockets", without: "ok", with: "EPERM", root: true},

		{attempt: "read the environment of another process", without: "ok", with: "EACCES"},
		{attempt: "read the arguments of another process", without: "ok", with: "EACCES"},
		{attempt: "open the memory of another process", without: "ok", with: "EACCES", root: true},
		{attempt: "trace another process", without: "ok", with: "EPERM", root: true},
		{attempt: "trace the host", without: "ok", with: "EPERM", root: true},
		{attempt: "take a descriptor of another process", without: "ok", with: "EPERM", root: true},
		{attempt: "signal the host", without: "ok", with: "EPERM"},
		{attempt: "kill another process by the readiness of a pipe", without: "ok", with: "it lives"},
		{attempt: "kill another process", without: "ok", with: "EPERM"},
		{attempt: "attach shared memory of another process", without: "ok", with: "ENOSYS"},
		{attempt: "remove shared memory of another process", without: "ok", with: "ENOSYS"},
		{attempt: "open a message queue", without: "ok", with: "ENOSYS"},

		{attempt: "run a set-user-ID program", without: "ok", with: "gained nothing", root: true},
		{attempt: "rename the machine", without: "ok", with: "EPERM", root: true},
		{attempt: "mount a file system", without: "ok", with: "EPERM", root: true},
		{attempt: "change the root", without: "ok", with: "EPERM", root: true},
		{attempt: "use the user's keys", without: "ok", with: "EPERM"},
		{attempt: "make a namespace of users", without: "ok", with: "EPERM", root: true},
		{attempt: "read the kernel's log", without: "ok", with: "EPERM", root: true},
		{attempt: "push keystrokes into a terminal", without: "ENOTTY", with: "EPERM"},
		{attempt: "get ahead of others", without: "ok", with: "EACCES", root: true},

		{attempt: "write a long file", without: "ok", with: "EFBIG"},
		{attempt: "open many files", without: "ok", with: "EMFILE"},
		{attempt: "fill the memory", without: "ok", with: "ENOMEM"},
		{attempt: "dump core", without: "no", with: "no"},
	}
}

// denialsHere is the table for this test binary and this user.
func denialsHere() []denial {
	list := denials()
	for i := range list {
		if d := &list[i]; d.attempt == "fill the memory" && raceDetector {
			d.with = "ok" // it needs more than any limit
		}
	}
	return list
}
