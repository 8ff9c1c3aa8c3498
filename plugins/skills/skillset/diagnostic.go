package skillset

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Code names a kind of problem, for programs.
type Code string

// The codes.
const (
	// CodeDuplicate is a skill whose slug an earlier folder has already.
	CodeDuplicate Code = "duplicate_skill"
	// CodeFrontMatter is front matter that is missing or cannot be read.
	CodeFrontMatter Code = "invalid_front_matter"
	// CodeName is a name that is missing, malformed, or not the folder's.
	CodeName Code = "invalid_name"
	// CodeDescription is a description that is missing or too long.
	CodeDescription Code = "invalid_description"
	// CodePaths is a glob that cannot be read. The skill stays, without it.
	CodePaths Code = "invalid_paths"
	// CodeHidden is text in which characters that hide were replaced.
	CodeHidden Code = "hidden_characters"
	// CodeNotForModels is a skill whose author keeps it from models.
	CodeNotForModels Code = "model_invocation_disabled"
	// CodeTooLarge is a file beyond the limits.
	CodeTooLarge Code = "file_too_large"
	// CodeTooMany is more folders, entries or skills than are looked at.
	CodeTooMany Code = "too_many"
	// CodeBinary is a file with a NUL, which is no text.
	CodeBinary Code = "binary"
	// CodeNotRegular is a fifo, socket, device or folder in a file's place, or
	// something else in a folder's.
	CodeNotRegular Code = "not_regular"
	// CodeSymlinkEscape is a link to a place outside of what may be read.
	CodeSymlinkEscape Code = "symlink_escape"
	// CodeMissingFolder is an absolute folder of the options that is not there.
	CodeMissingFolder Code = "missing_folder"
	// CodePermission is something that may not be read.
	CodePermission Code = "permission"
	// CodeReadError is any other failure to read, link loops included.
	CodeReadError Code = "read_error"
)

// Severity says how bad a problem is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Severity is the severity of a code: an error for what may be an attack, a
// warning for what somebody should mend, and otherwise information.
func (c Code) Severity() Severity {
	switch c {
	case CodeSymlinkEscape, CodeHidden:
		return SeverityError
	case CodeDuplicate, CodeNotForModels, CodeMissingFolder:
		return SeverityInfo
	default:
		return SeverityWarning
	}
}

// Diagnostic is one problem, in the order in which things were looked at.
type Diagnostic struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Path is the exact path of the file or folder. It is not fit for printing:
	// see [PrintPath].
	Path string `json:"path"`
	// Detail is a sentence for people. It never holds text of a file.
	Detail string `json:"detail"`
}

// problem is a reason to leave something out. With gone set there is nothing to
// tell: the file is not there.
type problem struct {
	code   Code
	detail string
	gone   bool
}

// problemf makes a problem.
func problemf(code Code, format string, args ...any) *problem {
	return &problem{code: code, detail: fmt.Sprintf(format, args...)}
}

// problemOf classifies an error of the view.
func problemOf(err error) *problem {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &problem{gone: true}
	case errors.Is(err, fs.ErrPermission):
		return &problem{code: CodePermission, detail: cause(err)}
	case errors.Is(err, ErrNotRegular), errors.Is(err, syscall.ENOTDIR):
		return &problem{code: CodeNotRegular, detail: cause(err)}
	default:
		return &problem{code: CodeReadError, detail: cause(err)}
	}
}

// cause is the innermost text of an error: the path has a field of its own.
func cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}
