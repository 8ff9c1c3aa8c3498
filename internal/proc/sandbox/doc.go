// Package sandbox confines one program: which files it may read and write, whether it may use the network, what it may
// use up. It starts and watches nothing; package proc does. [FromGrants] makes a [Policy] from configuration.
//
// [Prepare] opens what is granted and makes a ruleset. [Confinement.Apply] restricts the calling thread for good: the
// caller has locked it, never gives it back, and starts the stopped program from it. [Confinement.Leave] prepares the
// end of that thread, which is in the program's domain and must be gone before the program runs. [Confinement.Limit],
// from another thread, sets resource limits.
//
// Tier T0 is nothing of this package. T1 is no_new_privs, a Landlock domain, a filter of system calls, no capabilities
// but those for files, and resource limits. T2 is T1 in a control group ([Group]), which bounds memory and tasks
// exactly and cannot be left. An unreachable tier is an [*UnreachableError]. Without a grant a program gets [Needs].
//
// Stability: internal.
package sandbox
