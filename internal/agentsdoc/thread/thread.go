// Package thread asks for the AGENTS.md document in effect for a thread, and renders it for a prompt.
//
// A gateway keeps the documents, at the root of a workspace and at directories of threads. [Ask] gets the one for a
// thread through the host service "documents". [Render] takes a document and a limit, and returns the text between the
// tags of a section. Each turn asks again, so that the turn after a save has the new text.
//
//	PREAMBLE
//
//	<AGENTS_MD>
//	BODY
//	[truncated: thread document, kept K of N characters]
//	</AGENTS_MD>
//
// The marker line is there only if the body was cut; K and N count characters of the document. [chain.Escaper] has
// escaped the body. Preamble and tags are the section's frame, which survives every cut.
package thread

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// Service is the host service that has the documents, as grants name it.
const Service = "documents"

// The plugin's own codes of failures; the operator's policy decides what follows.
const (
	CodeContextIncomplete = "context_incomplete"    // the host does not say which thread the turn belongs to
	CodeNotGranted        = "documents_not_granted" // the plugin may not ask the service any more
	CodeUnavailable       = "documents_unavailable" // the service does not answer now; a retry may help
	CodeFailed            = "documents_failed"      // the service refuses to answer
	CodeInvalid           = "documents_invalid"     // the answer cannot be read
)

type query struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
}

func queryOf(c *phases.Context) (query, error) {
	q := query{WorkspaceID: c.WorkspaceID, ThreadID: c.Conversation()}
	var missing string
	switch {
	case q.WorkspaceID == "":
		missing = "workspace_id"
	case q.ThreadID == "":
		missing = "thread_id"
	default:
		return q, nil
	}
	e := sdk.Fail(CodeContextIncomplete, "the context has no "+missing+": documents belong to the threads of a workspace")
	e.SafeForUser = true // it is about the host's own words
	return q, e
}

// Answer is what the service knows.
type Answer struct {
	Document    *Document           // the one in effect, or nil
	Diagnostics []phases.Diagnostic // the service's own, such as "thread_unknown"
}

// Document is a document of the tree.
type Document struct {
	ID      string
	Version int64 // the text's revision; 0 if the host has none
	// Path has the names of the directories from below the root down to the one that holds the document; empty for the
	// root's.
	Path    []string
	Content string
}

// Ask asks a host for the document in effect for the thread whose instructions apply to a turn, for as long as ctx
// allows. Errors are [*phases.Error] with one of the codes above, or the cause of ctx.
func Ask(ctx context.Context, host phases.Host, c *phases.Context) (Answer, error) {
	q, err := queryOf(c)
	if err != nil {
		return Answer{}, err
	}
	params, _ := json.Marshal(q) //nolint:errchkjson // texts always can
	data, err := host.Call(ctx, Service, "resolve_for_thread", params)
	switch {
	case err != nil && ctx.Err() != nil:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return Answer{}, refused(err)
	}
	a, err := Decode(data)
	if err != nil {
		return Answer{}, failed(CodeInvalid, "the answer of the host service "+Service+" cannot be read", err)
	}
	return a, nil
}

// refused translates an error of the host, whose words are safe for users.
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

func failed(code, message string, err error) *phases.Error {
	e := sdk.Fail(code, fmt.Sprintf("%s: %v", message, err))
	e.Err = err
	return e
}

// Decode reads an answer of the service. An invalid answer is an error, never an answer without a document.
func Decode(data json.RawMessage) (Answer, error) {
	var wire struct {
		Effective   json.RawMessage `json:"effective"` // required; may be null
		Diagnostics []struct {
			Code     string          `json:"code"`
			Severity phases.Severity `json:"severity"`
			Message  string          `json:"message"`
		} `json:"diagnostics"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return Answer{}, err
	}
	if len(wire.Effective) == 0 {
		return Answer{}, fmt.Errorf("it has no field %q", "effective")
	}
	var a Answer
	for _, d := range wire.Diagnostics {
		// Whether users may read the host's message is unknown, so that stays with the operator. The code is for
		// everyone.
		a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
			Code: sdk.CleanText(cmp.Or(d.Code, Service)), Severity: cmp.Or(d.Severity, phases.SeverityInfo), Message: sdk.CleanText(d.Message),
		})
	}
	if bytes.Equal(wire.Effective, []byte("null")) {
		return a, nil
	}
	var effective struct {
		Doc struct {
			ID      string  `json:"id"`
			Version int64   `json:"version"`
			Content *string `json:"content"`
		} `json:"doc"`
		SourcePath []string `json:"source_path"`
	}
	if err := json.Unmarshal(wire.Effective, &effective); err != nil {
		return Answer{}, err
	}
	doc := &effective.Doc
	if doc.ID == "" || doc.Content == nil {
		return Answer{}, fmt.Errorf("its document has no %q or no %q", "id", "content")
	}
	a.Document = &Document{ID: doc.ID, Version: doc.Version, Path: effective.SourcePath, Content: *doc.Content}
	return a, nil
}

// The frame of the section: a preamble and the tags.
const (
	Preamble = "Below is the AGENTS.md document that is in effect for this thread's place in the tree of threads. " +
		"System, developer and explicit user messages take precedence over it."
	FrameOpen  = Preamble + "\n\n<AGENTS_MD>"
	FrameClose = "</AGENTS_MD>"
)

// MaxChars is the length of a thread's document that the plugin proposes to the operator, frame included.
const MaxChars = 16_000

// Frame surrounds the text.
func Frame() phases.Frame { return phases.Frame{Open: FrameOpen, Close: FrameClose} }

// Label names the place of a document for people: the names of its directories, or "root". It is fit for printing.
func (d *Document) Label() string {
	if len(d.Path) == 0 {
		return "root" // a directory may have that name too; the document's id tells them apart
	}
	return sdk.PlainName(strings.Join(d.Path, " / "))
}

// Ref is the document as a source of a section: ID@VERSION is the exact revision, and the hash that of its content.
func (d *Document) Ref() phases.SourceRef {
	id := sdk.PlainName(d.ID)
	if d.Version > 0 {
		id += "@" + strconv.FormatInt(d.Version, 10)
	}
	sum := sha256.Sum256([]byte(d.Content))
	return phases.SourceRef{Kind: "document", ID: id, Label: d.Label(), Hash: "sha256:" + hex.EncodeToString(sum[:])}
}

// Rendering is a document as it goes into a prompt.
type Rendering struct {
	Content     string              // the text within the frame; empty if the document is blank or does not fit
	Cut         *phases.SelfCut     // what is missing; nil if the text is whole
	Diagnostics []phases.Diagnostic // what was done to the text
}

// Render makes the text of a document. In its frame, and with the backslashes that a host adds, it has at most limit
// characters; 0 means no limit, as in [phases.AnswerBudget].
func Render(d *Document, limit int) Rendering {
	text := sdk.CleanText(d.Content)
	if strings.TrimSpace(text) == "" {
		return Rendering{}
	}
	if limit == 0 {
		limit = math.MaxInt
	}
	escaped, places := chain.Escaper().Escape(strings.TrimRight(text, "\n"))
	b := body{text: escaped, chars: sdk.CountChars(escaped), total: sdk.CountChars(text)}
	content, kept := b.fit(limit)
	r := Rendering{Content: content}
	if content == "" {
		r.reportf(d, chain.CodeOmittedBudget, "%d characters; the budget is exhausted", b.total)
		return r
	}
	if hidden := chain.FindHidden(text); hidden.Count > 0 {
		r.reportf(d, chain.CodeHiddenUnicode, "hidden characters: %d, the first in line %d", hidden.Count, hidden.Lines[0])
	}
	if places > 0 {
		r.reportf(d, chain.CodeEscaped, "places that look like lines or tags of the prompt, and got a backslash: %d", places)
	}
	if kept < b.total {
		r.reportf(d, chain.CodeTruncated, "kept %d of %d characters", kept, b.total)
		r.Cut = &phases.SelfCut{Kept: sdk.CountChars(content), Original: b.chars}
	}
	return r
}

// reportf adds a diagnostic, which holds no text of the document, so anyone may see it.
func (r *Rendering) reportf(d *Document, code chain.Code, format string, args ...any) {
	r.Diagnostics = append(r.Diagnostics, phases.Diagnostic{
		Code: string(code), Severity: code.Severity(), SafeForUser: true,
		Message: "document " + d.Label() + ": " + fmt.Sprintf(format, args...),
	})
}

type body struct {
	text  string
	chars int // of text
	total int // characters of the document
}

// fit returns as much of the body as fits into limit characters with its frame, and how many characters of the
// document that is. A cut body ends in the marker.
func (b *body) fit(limit int) (content string, kept int) {
	frame := Frame()
	for chars := limit - sdk.SectionSize(frame, "") - 1; chars >= 0; {
		content, kept = b.cut(chars)
		over := sdk.SectionSize(frame, content) - limit
		if over <= 0 || content == "" {
			return content, kept
		}
		chars -= over
	}
	return "", 0
}

// cut is fit without what the host adds.
func (b *body) cut(chars int) (content string, kept int) {
	if b.chars <= chars {
		return b.text, b.total
	}
	chars -= len(marker(b.total, b.total)) + len("\n")
	piece := chain.Escaper().Cut(b.text, math.MaxInt, chars)
	if strings.TrimSpace(piece) == "" {
		return "", 0
	}
	_, inserted := chain.Escaper().Escape(piece) // finds the places that were escaped
	kept = sdk.CountChars(piece) - inserted
	return piece + "\n" + marker(kept, b.total), kept
}

func marker(kept, total int) string {
	return fmt.Sprintf("%s thread document, kept %d of %d characters]", chain.TruncatedWord, kept, total)
}
