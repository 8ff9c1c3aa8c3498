package phases

import (
	"slices"
	"strings"
)

// Audience is who reads an answer, from the widest to the narrowest. The
// operator's log is not among them: it gets every word.
type Audience int

// The audiences. Each sees what those before it see, and more.
const (
	// AudienceUser reads the answers of a gateway without the right "admin".
	AudienceUser Audience = iota
	// AudienceAudit reads manifests, wherever they are shown or kept.
	AudienceAudit
	// AudienceOperator reads the output of the command line, or calls a gateway
	// with the right "admin".
	AudienceOperator
)

// Opens reports whether texts of this visibility are shown to the audience, if
// their author calls them safe.
func (v Visibility) Opens(a Audience) bool {
	switch v {
	case VisibilityUserVisible:
		return a >= AudienceUser
	case VisibilityUserAudit:
		return a >= AudienceAudit
	case VisibilityDebug:
		return a >= AudienceOperator
	case VisibilityInternal:
	}
	return false
}

// HiddenRemark stands for a remark of a plugin that the audience may not read.
const HiddenRemark = "a remark of the plugin; its words are in the operator's log"

// Remark makes a diagnostic that a plugin worded one of the host's: its words
// move to Detail, and Message is a neutral sentence until [Diagnostic.For] opens
// it. A code that is not a word ([ValidCode]) moves there too. Whose it is must
// be set by the caller.
func (d Diagnostic) Remark(v Visibility) Diagnostic {
	d.Detail, d.Message, d.Visibility = d.Message, HiddenRemark, v
	if d.Detail == "" {
		d.Message = ""
	}
	if !ValidCode(d.Code) {
		d.Detail, d.SafeForUser = joinWords(d.Code, d.Detail), false
		d.Code, d.Message = CodeInvalidCode, HiddenRemark
	}
	switch d.Severity {
	case SeverityWarning, SeverityError:
	default:
		d.Severity = SeverityInfo
	}
	d.Cause, d.OtherSubscription, d.Slot = "", "", "" // the engine's own
	return d
}

// For returns the diagnostic as the audience may see it: Message is the whole
// text where its author calls it safe and its visibility opens it. The row itself
// always stays. Detail is empty in the result, so that doing it twice changes
// nothing.
func (d Diagnostic) For(a Audience) Diagnostic {
	if d.opened(a) {
		d.Message = d.Detail
	}
	d.Detail = ""
	return d
}

func (d *Diagnostic) opened(a Audience) bool {
	return d.Detail != "" && d.SafeForUser && d.Visibility.Opens(a)
}

// DiagnosticsFor returns a copy of the list as the audience may see it; never nil.
func DiagnosticsFor(list []Diagnostic, a Audience) []Diagnostic {
	out := make([]Diagnostic, len(list))
	for i := range list {
		out[i] = list[i].For(a)
	}
	return out
}

// For returns the error as the audience may see it, by the rule of
// [Diagnostic.For]; nil stays nil. The result wraps what e wraps.
func (e *Error) For(a Audience) *Error {
	if e == nil {
		return nil
	}
	shown := *e
	if e.Detail != "" && e.SafeForUser && e.Visibility.Opens(a) {
		shown.Message = e.Detail
	}
	shown.Detail = ""
	return &shown
}

// For returns the contribution as the audience may see it, by the rule of
// [Diagnostic.For]: without the words of a diagnostic and the details of an audit
// event that are not open to it. Whole is nil in the result.
func (c Applied) For(a Audience) Applied {
	if c.Whole != nil && c.SafeForUser && c.Visibility.Opens(a) {
		c.Value = c.Whole
	}
	c.Whole = nil
	return c
}

// Conceal makes the value what every audience may see; what it was becomes Whole.
// Contributions of most kinds are content, which the operator granted, and stay.
func (c *Applied) Conceal(v Visibility) {
	switch value := c.Value.(type) {
	case *ManifestDiagnostic:
		shown := *value
		if shown.Message != "" {
			shown.Message = HiddenRemark
		}
		c.Value, c.Whole, c.SafeForUser = &shown, value, value.SafeForUser
	case *Audit:
		shown := *value
		shown.Details = nil
		c.Value, c.Whole, c.SafeForUser = &shown, value, value.SafeForUser
	default:
		return
	}
	c.Visibility = v
}

// For returns the outcome as the audience may see it. It shares with o what is
// the same for everybody; nil stays nil.
func (o *Outcome) For(a Audience) *Outcome {
	if o == nil {
		return nil
	}
	shown := *o
	shown.Diagnostics, shown.Error = DiagnosticsFor(o.Diagnostics, a), o.Error.For(a)
	shown.Contributions, shown.Shadowed = appliedFor(o.Contributions, a), appliedFor(o.Shadowed, a)
	shown.Background = slices.Clone(o.Background)
	for i := range shown.Background {
		shown.Background[i].Diagnostics = DiagnosticsFor(shown.Background[i].Diagnostics, a)
	}
	return &shown
}

func appliedFor(list []Applied, a Audience) []Applied {
	out := slices.Clone(list)
	for i := range out {
		out[i] = out[i].For(a)
	}
	return out
}

// wordsError is a safe sentence with words of a plugin's behind it.
type wordsError struct {
	message, detail string
	err             error
}

// WithDetail returns an error whose text is the message alone. The detail holds
// words of a plugin, for [DetailOf] and nobody else; err may be nil.
func WithDetail(message, detail string, err error) error {
	return &wordsError{message, detail, err}
}

// Error implements error: the safe sentence.
func (e *wordsError) Error() string { return e.message }

// Unwrap returns the cause.
func (e *wordsError) Unwrap() error { return e.err }

// maxDetail bounds what a plugin says of one failure, in bytes. It stands in logs, in
// events and in the plugin's row.
const maxDetail = 8 << 10

// DetailOf returns the words of plugins that an error and those that it wraps
// hold apart from their texts: "" if there are none. They are for the operator's
// log; what is longer than 8 KiB is cut.
func DetailOf(err error) string {
	var found []string
	collect(err, &found)
	words := joinWords(found...)
	if len(words) > maxDetail {
		words = strings.ToValidUTF8(words[:maxDetail], "") + "…"
	}
	return words
}

func collect(err error, into *[]string) {
	detail := ""
	switch e := err.(type) { //nolint:errorlint // each error of the chain by itself
	case nil:
		return
	case *Error:
		if e == nil {
			return
		}
		detail = e.Detail
	case *wordsError:
		detail = e.detail
	}
	if detail != "" && !slices.Contains(*into, detail) {
		*into = append(*into, detail)
	}
	switch e := err.(type) { //nolint:errorlint // each error of the chain by itself
	case interface{ Unwrap() error }:
		collect(e.Unwrap(), into)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			collect(one, into)
		}
	}
}

// Whole returns an error's text with the words of plugins behind it, for the
// operator's log; "" for nil. Whoever logs an error that a plugin may have a part in
// logs this.
func Whole(err error) string {
	if err == nil {
		return ""
	}
	if detail := DetailOf(err); detail != "" {
		return err.Error() + ": " + detail
	}
	return err.Error()
}

// joinWords joins those that are not empty.
func joinWords(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "; ")
}

// CodeInvalidCode stands for a code of a plugin's that is not a word.
const CodeInvalidCode = "invalid_code"

// maxCode is the length of the longest code of a plugin's own.
const maxCode = 64

// ValidCode reports whether s may be a code of a plugin's own: it leaves the
// host whatever the visibility, so that it must be a word and can be no sentence.
// It begins with a lower-case letter; such letters, digits, "_" and "." follow, at
// most 64 bytes in all.
func ValidCode(s string) bool {
	if s == "" || len(s) > maxCode || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '.'
	}) < 0
}
