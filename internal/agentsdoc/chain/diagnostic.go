package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/phases"
)

// Code names a kind of problem, for programs.
type Code string

// The codes of this package.
const (
	CodeTruncated          Code = "truncated"            // only the beginning of a source is in the text
	CodeOmittedBudget      Code = "omitted_budget"       // a source did not fit into the text
	CodeOmittedCount       Code = "omitted_count"        // a source beyond the allowed number of files
	CodeInvalidUTF8        Code = "invalid_utf8"         // bytes of a text had to be replaced
	CodeBinary             Code = "binary"               // a file with a NUL near its beginning
	CodeSymlinkEscape      Code = "symlink_escape"       // a link that leaves the readable directories
	CodeSymlinkStub        Code = "symlink_stub"         // a small file that was taken for a link
	CodeStubLoop           Code = "stub_loop"            // an endless or too long chain of stubs
	CodeGitMetadata        Code = "git_metadata"         // a link into git's own files
	CodeNotRegular         Code = "not_regular"          // a directory, fifo, socket or device with a candidate's name
	CodePermission         Code = "permission"           // something that may not be looked at or read
	CodeReadError          Code = "read_error"           // any other failure to look or read, link loops included
	CodeBusy               Code = "file_busy"            // another program holds a lease; it can be read a moment later
	CodeReadCap            Code = "read_cap"             // a file longer than the read limit
	CodeNearMissName       Code = "near_miss_name"       // a file whose name looks like a candidate's
	CodeDuplicate          Code = "duplicate"            // a source that occurs nearer in the chain as well
	CodeShadowedByOverride Code = "shadowed_by_override" // a file that an override of its directory replaces
	CodeEmptyOverride      Code = "empty_override"       // an override without text, which replaces nothing
	CodeUntrustedRoot      Code = "untrusted_root"       // a file that does not count as instructions
	CodeHiddenUnicode      Code = "hidden_unicode"       // a text with invisible characters
	CodeImportRefused      Code = "import_refused"       // a line that names a file which may not be imported
	CodeRuleNotCarried     Code = "rule_not_carried"     // a rule that applies in ways that are not supported
	CodeEscaped            Code = "escaped"              // a source whose text had to be escaped
	CodeRootRefused        Code = "root_refused"         // an invalid root in the options
	CodeMarkerInvalid      Code = "marker_invalid"       // an invalid marker, candidate or pattern
	CodeReadByAgent        Code = "read_by_agent"        // a file that the agent gives the model by itself
	CodePathTooLong        Code = "path_too_long"        // a path beyond the limits of the system, or ours
)

// Severity is the usual severity of a code.
func (c Code) Severity() phases.Severity {
	switch c {
	case CodeSymlinkEscape, CodeGitMetadata, CodeTruncated, CodeOmittedBudget, CodeBinary, CodePermission, CodeBusy:
		return phases.SeverityError
	case CodeEmptyOverride, CodeShadowedByOverride, CodeDuplicate, CodeReadByAgent:
		return phases.SeverityInfo
	default:
		return phases.SeverityWarning
	}
}

// Diagnostic is one problem. They are listed in the order in which the chain was walked.
type Diagnostic struct {
	Code     Code            `json:"code"`
	Severity phases.Severity `json:"severity"`
	// Path is the exact path of the file or directory, absolute if possible. It is not fit for printing: see
	// sdk.PlainName.
	Path string `json:"path"`
	// Detail is a sentence for people. It never holds text of a file.
	Detail string `json:"detail"`
}

func diagnostic(code Code, path, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Severity: code.Severity(), Path: path, Detail: fmt.Sprintf(format, args...)}
}

// problem is a reason not to use a file. With gone set there is nothing to report: the file does not exist, or
// vanished.
type problem struct {
	code   Code
	detail string
	gone   bool
}

// CodeOf is the code of an error of a view.
func CodeOf(err error) Code { return problemOf(err).code }

func problemOf(err error) *problem {
	p := &problem{code: CodeReadError, detail: fsview.Cause(err)}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &problem{gone: true}
	case errors.Is(err, fs.ErrPermission):
		p.code = CodePermission
	case errors.Is(err, syscall.EAGAIN):
		p.code, p.detail = CodeBusy, "another program holds a lease on it"
	case errors.Is(err, ErrLeaves):
		p.code = CodeSymlinkEscape
	case errors.Is(err, errGit):
		p.code = CodeGitMetadata
	case errors.Is(err, syscall.ENAMETOOLONG):
		p.code = CodePathTooLong
	}
	return p
}

type (
	// FS is [fsview.FS].
	FS = fsview.FS
	// Dir is [fsview.Dir].
	Dir = fsview.Dir
	// OS is [fsview.OS].
	OS = fsview.OS
)
