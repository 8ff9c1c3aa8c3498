// Package sandbox confines one program: which files it may read and write,
// whether it may speak to the network, what it may use up.
//
// It describes and applies; it starts nothing, watches nothing and owns no
// goroutine. Package proc does that, and is its only user.
//
// # Where to start
//
// A [Policy] says what a program may do; [FromGrants] makes one of the lists
// in a configuration. [Probe] says which [Tier] this system reaches, and what
// keeps it from more. The life of a confinement:
//
//  1. [Prepare] opens what is granted and makes a ruleset of it, on any thread.
//  2. [Confinement.Apply] restricts the calling thread, for good. The caller
//     has locked it, is not on the process's first thread, never gives it back,
//     and starts the program from it, stopped. What the program starts inherits
//     all.
//  3. [Confinement.Leave] prepares the end of that thread, which is in the
//     program's domain and must be gone before the program runs.
//  4. [Confinement.Limit], from another thread, sets the resource limits.
//  5. [Confinement.Close] frees the ruleset; the restriction stays.
//
// A [Group] is the part that only the second tier has: a control group, which
// bounds memory and tasks exactly, and out of which nothing leaves.
//
// # Tiers
//
// T0 is nothing of this package. T1 is no_new_privs, a Landlock domain, a
// filter of system calls, no capabilities but those for files, and resource
// limits. T2 is T1 in a control group. A tier that was asked for and cannot be
// reached is an [*UnreachableError]; what a reached tier lacks because the
// kernel is older than the best is in [Confinement.Missing].
//
// # What a program gets without a grant
//
// What it needs to start at all, and nothing else: [Needs] is the table.
//
// Stability: internal.
package sandbox
