package proc

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/grapnelhq/grapnel/phases"
)

// Class says what a failed start means for the next one.
type Class uint8

// The classes. ClassNone is no failure of the plugin: nil, or the caller's
// own cancellation.
const (
	ClassNone Class = iota
	// ClassOrdinary failures may pass: wait longer each time, give up after a
	// number of them.
	ClassOrdinary
	// ClassPermanent failures stay until somebody changes something.
	ClassPermanent
	// ClassResource failures are the host's own: wait, but do not count them
	// against the plugin.
	ClassResource
)

// String returns the class as a word.
func (c Class) String() string {
	switch c {
	case ClassNone:
		return "none"
	case ClassOrdinary:
		return "ordinary"
	case ClassPermanent:
		return "permanent"
	case ClassResource:
		return "resource"
	}
	return "undefined"
}

// ClassOf returns the class of an error from Start or of an exit.
func ClassOf(err error) Class {
	switch {
	case err == nil:
		return ClassNone
	case isResource(err):
		return ClassResource
	}
	switch phases.CodeOf(err) {
	case phases.CauseCancelled:
		return ClassNone
	case phases.CauseExecFailed, phases.CauseVersionMismatch, phases.CauseChecksumMismatch, phases.CauseUnsafePath:
		return ClassPermanent
	default:
		return ClassOrdinary
	}
}

// isResource reports whether err says that the host ran out of something. A
// busy text file is among them: another thread of the host has just written
// the program and not yet closed it, or forked in between. A bad descriptor is
// one whose number would be beyond the limit.
func isResource(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.ETXTBSY, syscall.EBADF,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// resourceOr wraps an error of the host's system: as unavailable if the host
// ran out of something, otherwise under code. format must end in %w.
func resourceOr(code phases.Cause, err error, format string, args ...any) *phases.Error {
	if isResource(err) {
		code = phases.CauseUnavailable
	}
	e := phases.Errorf(code, format, append(args, err)...)
	e.Retryable = code == phases.CauseUnavailable
	return e
}

// execError explains why the system refused to execute a program that could be
// opened and read. hint says more about its format, or is "".
func execError(path, hint string, err error) *phases.Error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		if hint == "" {
			hint = "it is no program for this machine, or a script without a #! line"
		}
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: %s: %w", path, hint, err)
	case errors.Is(err, fs.ErrNotExist):
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: its interpreter or loader is absent: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: not executable, or on a file system mounted without execution: %w", path, err)
	}
	return resourceOr(phases.CauseExecFailed, err, "%s cannot be executed: %w", path)
}
