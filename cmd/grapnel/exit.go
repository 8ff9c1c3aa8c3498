package main

import (
	"errors"
	"fmt"
)

// The exit codes.
const (
	exitOK = iota
	// exitNo: the answer is "no": denied, differs, broken, failed closed.
	exitNo
	// exitUsage: wrong usage or configuration; nothing is on standard output.
	exitUsage
	// exitUnable: it could not be done: a store out of reach, a plugin that does
	// not start.
	exitUnable
)

// exitInterrupted is what shells show for a program that SIGINT has ended.
const exitInterrupted = 130

// exitError carries an exit code. A nil err has been told already.
type exitError struct {
	code int
	err  error
}

// Error is empty for what has been told already; run then prints nothing.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error that the code stands for.
func (e *exitError) Unwrap() error { return e.err }

// answerNo ends a command whose output says it all.
func answerNo() error { return &exitError{code: exitNo} }

// refused ends a command whose answer is "no" for a reason that people should
// see beside the output.
func refused(err error) error { return &exitError{code: exitNo, err: err} }

// unable ends a command that could not do its work.
func unable(err error) error { return &exitError{code: exitUnable, err: err} }

// usagef ends a command that was called wrongly.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// codeOf returns the exit code of a command's error; what has none is a mistake
// in usage or configuration.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded.code
	}
	return exitUsage
}
