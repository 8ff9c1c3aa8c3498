// Package agenthooks knows how agents are told to call grapnel-hook: in which files their hooks are configured, what an
// entry of ours looks like there, and what an agent makes of what a hook said.
//
// It is pure: a [File] is parsed from bytes, changed and written back to bytes, and [Host.Read] judges what a run has
// given. Reading, writing and running is the command line's. Everything about a host stands in one row of the table
// in host.go; which events mean something is said by package bridge.
//
// An entry is ours by the program that it calls, grapnel-hook, or by the gateway's address and the name of the token's
// variable. Nothing else is changed: order, formatting, comments and unknown keys of a file stay.
package agenthooks
