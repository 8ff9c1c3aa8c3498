package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Code names a kind of problem, for programs.
type Code string

// The codes that this package gives. The command line lists them with those of
// the other parts of the plugin.
const (
	// CodeTruncated is a source of which only the beginning is in the text.
	CodeTruncated Code = "truncated"
	// CodeOmittedBudget is a source that got no room in the text.
	CodeOmittedBudget Code = "omitted_budget"
	// CodeOmittedCount is a source beyond the allowed number of files.
	CodeOmittedCount Code = "omitted_count"
	// CodeInvalidUTF8 is a text in which bytes had to be replaced.
	CodeInvalidUTF8 Code = "invalid_utf8"
	// CodeBinary is a file with a NUL near its beginning.
	CodeBinary Code = "binary"
	// CodeSymlinkEscape is a link to a place outside of what may be read.
	CodeSymlinkEscape Code = "symlink_escape"
	// CodeSymlinkStub is a small file that was taken for a link.
	CodeSymlinkStub Code = "symlink_stub"
	// CodeStubLoop is a chain of such files that is too long or has no end.
	CodeStubLoop Code = "stub_loop"
	// CodeGitMetadata is a link into git's own files.
	CodeGitMetadata Code = "git_metadata"
	// CodeNotRegular is a folder, fifo, socket or device with a candidate's name.
	CodeNotRegular Code = "not_regular"
	// CodePermission is something that may not be looked at or read.
	CodePermission Code = "permission"
	// CodeReadError is any other failure to look or read, link loops included.
	CodeReadError Code = "read_error"
	// CodeBusy is a file that could not be opened because another program holds a lease
	// on it. A moment later it can be read.
	CodeBusy Code = "file_busy"
	// CodeReadCap is a file that is longer than what is read of one.
	CodeReadCap Code = "read_cap"
	// CodeNearMissName is a file whose name looks like a candidate's.
	CodeNearMissName Code = "near_miss_name"
	// CodeDuplicate is a source that stands nearer in the chain as well.
	CodeDuplicate Code = "duplicate"
	// CodeShadowedByOverride is a file that an override of its folder replaces.
	CodeShadowedByOverride Code = "shadowed_by_override"
	// CodeEmptyOverride is an override without text, which replaces nothing.
	CodeEmptyOverride Code = "empty_override"
	// CodeUntrustedRoot is a file that is not read for instructions, because its
	// root is not trusted.
	CodeUntrustedRoot Code = "untrusted_root"
	// CodeHiddenUnicode is a text with characters that do not show.
	CodeHiddenUnicode Code = "hidden_unicode"
	// CodeImportRefused is a line that names a file which may not be imported.
	CodeImportRefused Code = "import_refused"
	// CodeEscaped is a source whose text had to be escaped.
	CodeEscaped Code = "escaped"
	// CodeRootRefused is a root given by options that cannot be one.
	CodeRootRefused Code = "root_refused"
	// CodeMarkerInvalid is a marker or candidate that is not a plain file name,
	// or a pattern that is none.
	CodeMarkerInvalid Code = "marker_invalid"
	// CodePathTooLong is a path beyond the limits of the system, or ours.
	CodePathTooLong Code = "path_too_long"
)

// Severity says how bad a problem is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Severity is the usual severity of a code.
func (c Code) Severity() Severity {
	switch c {
	case CodeSymlinkEscape, CodeGitMetadata, CodeTruncated, CodeOmittedBudget, CodeBinary, CodePermission, CodeBusy:
		return SeverityError
	case CodeEmptyOverride, CodeShadowedByOverride, CodeDuplicate:
		return SeverityInfo
	default:
		return SeverityWarning
	}
}

// Diagnostic is one problem. There is one row per problem, in the order in
// which the chain was walked.
type Diagnostic struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Path is the exact path of the file or folder, absolute where there is one.
	// It is not fit for printing: see [PrintPath].
	Path string `json:"path"`
	// Detail is a sentence for people. It never holds text of a file.
	Detail string `json:"detail"`
}

// diagnostic makes a row of the code's usual severity.
func diagnostic(code Code, path, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Severity: code.Severity(), Path: path, Detail: fmt.Sprintf(format, args...)}
}

// problem is a reason not to use a file. The empty code with gone set says that
// there is nothing to tell: the file is not there, or not any more.
type problem struct {
	code   Code
	detail string
	gone   bool
}

// problemOf classifies an error of the view. A file that vanishes between two
// looks at it is no problem.
func problemOf(err error) *problem {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &problem{gone: true}
	case errors.Is(err, fs.ErrPermission):
		return &problem{code: CodePermission, detail: cause(err)}
	case errors.Is(err, syscall.EAGAIN):
		return &problem{code: CodeBusy, detail: "another program holds a lease on it"}
	case errors.Is(err, errLeaves):
		return &problem{code: CodeSymlinkEscape, detail: cause(err)}
	case errors.Is(err, syscall.ENAMETOOLONG):
		return &problem{code: CodePathTooLong, detail: cause(err)}
	default:
		return &problem{code: CodeReadError, detail: cause(err)}
	}
}

// cause is the innermost text of an error: the path, which the wrapping layers
// add, has a field of its own in a diagnostic.
func cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}
