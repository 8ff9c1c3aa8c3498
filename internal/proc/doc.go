// Package proc starts, watches and stops one plugin process.
//
// It is what stands between Grapnel and programs that hang, flood, crash, fork
// or lie: whatever a plugin does, its start ends within a deadline, its death
// is known within about a millisecond, and after its stop nothing of it is
// left: no process, zombie, socket, folder, goroutine or descriptor.
//
// It is not a supervisor: it starts a process once and never again (package
// supervise decides about that), and it knows nothing of phases or hooks: it
// hands out the connection on which package wire speaks with the plugin.
//
// # Where to start
//
// [Start] takes a [Spec] and gives a [Process]. Its life:
//
//  1. The program is opened, its path and checksum are checked, and what was
//     opened is what is executed (on Linux; see [Missing]).
//  2. A private folder is made: socket folder, TMPDIR and working folder.
//  3. The program is started from an operating system thread that stays locked
//     until the program ends, because the death signal follows that thread. If
//     a [Sandbox] is wanted, the thread has confined itself first (package
//     sandbox): the program, and all that it starts, inherit that.
//  4. Its first line, go-plugin's handshake, says where it listens. The host
//     connects, and uses the connection once it is known that the other end is
//     the plugin or a descendant; [Process.Conn] is the result.
//  5. [Measure] says what processes hold, with all that they have started, and
//     [Process.EnforceMemory] ends one that holds more than it may.
//  6. [Process.Stop] asks, then terminates, then kills; [Process.Kill] only
//     kills. The end of the process, whoever brought it about, closes
//     [Process.Done] and sets off the cleaning up, which Stop waits for.
//
// # Why go-plugin is on one side only
//
// Plugins speak the protocol of hashicorp/go-plugin, mostly by its server. Its
// client is not used. It trusts a plugin's first line and serves its broker; it
// has no death signal, inherits the host's input and environment, stops reading
// a standard output without newlines, knows of an exit only when every holder of
// the pipes has gone, and its Kill has no bound.
//
// # Panics
//
// What a plugin writes is read by goroutines that this package starts. A panic in
// one of them, a mistake of ours that a plugin has found, kills that plugin and
// stands among its last words.
//
// # The confined thread
//
// A thread that has confined itself can no longer open what the plugin may not
// open, nor signal the host's other threads, for as long as it lives. It
// therefore does three things only: start the program, lower its limits, wait
// for its end. Whatever needs a file, such as reading /proc, happens on other
// threads. Go never makes new threads from a locked one, so nothing of it
// spreads, and the thread ends with its goroutine. A host that changes its user
// (setuid) while confined plugins run is stopped by Go's runtime, because that
// thread cannot follow: change the user before the first start.
//
// # Scripts
//
// A binary is executed by the handle that was hashed. A script without a
// checksum is executed by its path, so that $0 is what its author expects; a
// pinned script is passed to the interpreter as an inherited descriptor, and
// its $0 is a link to that. An interpreter (or any other file) in Spec.Pins is
// checked at each start; an interpreter that the script's first line names is
// then executed by the handle that was checked. What "/usr/bin/env NAME" finds
// is looked up by env itself, by path.
//
// Stability: internal.
package proc
