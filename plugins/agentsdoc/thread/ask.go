package thread

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// Service is the host service that has the documents, as grants name it.
const Service = "documents"

// method is the one that is asked.
const method = "resolve_for_thread"

// The plugin's own codes of failures, of which the operator's policy decides what
// becomes.
const (
	// CodeContextIncomplete: the host does not say for whom the turn is.
	CodeContextIncomplete = "context_incomplete"
	// CodeNotGranted: the plugin may not ask the service any more.
	CodeNotGranted = "documents_not_granted"
	// CodeUnavailable: the service gives no answer now. Another call may get one.
	CodeUnavailable = "documents_unavailable"
	// CodeFailed: the service refuses to answer.
	CodeFailed = "documents_failed"
	// CodeInvalid: what it gives is no answer.
	CodeInvalid = "documents_invalid"
)

// Query says whose document is wanted.
type Query struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
}

// QueryOf is the query for a turn: that of the thread whose instructions apply to
// it. A context that lacks a part of it is an error with CodeContextIncomplete.
func QueryOf(c *phases.Context) (Query, error) {
	q := Query{WorkspaceID: c.WorkspaceID, ThreadID: c.Conversation()}
	switch {
	case q.WorkspaceID == "":
		return q, incomplete("workspace_id")
	case q.ThreadID == "":
		return q, incomplete("thread_id")
	default:
		return q, nil
	}
}

// incomplete is the error for a context without a field.
func incomplete(field string) error {
	e := sdk.Fail(CodeContextIncomplete, "the context has no "+field+": documents belong to the threads of a workspace")
	e.SafeForUser = true // it is about the host's own words
	return e
}

// Answer is what the service knows.
type Answer struct {
	// Document is the one in effect; nil where there is none.
	Document *Document
	// Diagnostics are the service's own, such as "thread_unknown".
	Diagnostics []phases.Diagnostic
}

// Document is a document of the tree.
type Document struct {
	ID string
	// Version is that of the revision whose text it is; 0 where the host has none.
	Version int64
	// Path are the names of the folders from below the root down to the one that
	// the document is kept at; empty for the root's.
	Path    []string
	Content string
}

// Ask asks a host for the document in effect. It takes no longer than ctx allows.
// Errors are [*phases.Error] with one of the codes above; the end of ctx is its
// cause.
func Ask(ctx context.Context, host phases.Host, q Query) (Answer, error) {
	params, err := json.Marshal(q)
	if err != nil {
		return Answer{}, failed(CodeInvalid, "the question cannot be put into words", err)
	}
	data, err := host.Call(ctx, Service, method, params)
	switch {
	case err != nil && ctx.Err() != nil:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return Answer{}, refused(err)
	}
	a, err := Decode(data)
	if err != nil {
		return Answer{}, failed(CodeInvalid, "the host service "+Service+" gives no answer that can be read", err)
	}
	return a, nil
}

// refused makes an error of the host one of the plugin's. Its words are the host's
// own, which are safe.
func refused(err error) error {
	var e *phases.Error
	switch phases.CodeOf(err) {
	case phases.CauseForbidden:
		e = failed(CodeNotGranted, "the plugin may not ask the host service "+Service+": grant it with host: ["+Service+"]", err)
	case phases.CauseUnavailable, phases.CauseTimeout, phases.CauseOverloaded:
		e = failed(CodeUnavailable, "the host service "+Service+" does not answer", err)
		e.Retryable = true
	default:
		e = failed(CodeFailed, "the host service "+Service+" fails", err)
	}
	e.SafeForUser = true
	return e
}

// failed is a failure with a cause.
func failed(code, message string, err error) *phases.Error {
	e := sdk.Fail(code, fmt.Sprintf("%s: %v", message, err))
	e.Err = err
	return e
}

// wireAnswer is the service's JSON. Fields that are not named here are others'.
type wireAnswer struct {
	// Effective has to be there: without it, it is no answer of this service.
	Effective   json.RawMessage  `json:"effective"`
	Diagnostics []wireDiagnostic `json:"diagnostics"`
}

type wireEffective struct {
	Doc struct {
		ID      string  `json:"id"`
		Version int64   `json:"version"`
		Content *string `json:"content"`
	} `json:"doc"`
	SourcePath []string `json:"source_path"`
}

type wireDiagnostic struct {
	Code     string          `json:"code"`
	Severity phases.Severity `json:"severity"`
	Message  string          `json:"message"`
}

// Decode reads an answer of the service. What is not understood is an error, and
// never an answer without a document.
func Decode(data json.RawMessage) (Answer, error) {
	var w wireAnswer
	if err := json.Unmarshal(data, &w); err != nil {
		return Answer{}, err
	}
	if len(w.Effective) == 0 {
		return Answer{}, fmt.Errorf("it has no field %q", "effective")
	}
	var a Answer
	for _, d := range w.Diagnostics {
		// The host does not say whether users may read its words, so they stay with
		// the operator. The code is for everyone.
		a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
			Code: printable(cmp.Or(d.Code, Service)), Severity: cmp.Or(d.Severity, phases.SeverityInfo), Message: printable(d.Message),
		})
	}
	if bytes.Equal(w.Effective, []byte("null")) {
		return a, nil
	}
	var e wireEffective
	if err := json.Unmarshal(w.Effective, &e); err != nil {
		return Answer{}, err
	}
	if e.Doc.ID == "" || e.Doc.Content == nil {
		return Answer{}, fmt.Errorf("its document has no %q or no %q", "id", "content")
	}
	a.Document = &Document{ID: e.Doc.ID, Version: e.Doc.Version, Path: e.SourcePath, Content: *e.Doc.Content}
	return a, nil
}
