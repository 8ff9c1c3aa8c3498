// Package proc starts, watches and stops one plugin process. Whatever the plugin does, [Start] ends within its
// deadline, the plugin's death is noticed within about a millisecond, and after [Process.Stop] nothing of it is left:
// no process, zombie, socket, directory, goroutine or descriptor. Restarts are the caller's business (package pool).
//
// Start checks the program, makes a private directory (sockets, TMPDIR, working directory), starts the program, reads
// go-plugin's handshake from its first line and connects once the peer is known to be the plugin or a descendant. Of
// hashicorp/go-plugin only the server side is used: its client has no death signal, passes on the host's environment,
// and does not bound Kill.
//
// A thread that has confined itself for a sandboxed plugin only starts the program and ends: it can no longer open
// files or signal other threads. A host must change its user (setuid) before the first confined start.
//
// A binary is executed by the descriptor that was hashed. A script without a checksum is executed by its path, so
// that $0 is what its author expects; a pinned script, and a pinned interpreter, by the checked descriptor.
//
// Without /proc a plugin outlives a killed host, descendants outside the process group are not found, programs are
// executed by path, core dumps stay on, memory kills count as crashes, peers of unix sockets are not checked, and there
// is no sandbox above T0. Windows has no SIGTERM, no check of who may write a program, and no sweep.
//
// Stability: internal.
package proc
