package phases

import (
	"slices"
	"strings"
)

// Audience is who reads an answer, from the widest to the narrowest. The operator's
// log is not an audience: it gets every word.
type Audience int

// The audiences. Each sees what the one before it sees, and more.
const (
	// AudienceUser reads the answers of a gateway without the right "admin".
	AudienceUser Audience = iota
	// AudienceAudit reads manifests, wherever they are shown or kept.
	AudienceAudit
	// AudienceOperator reads the output of the command line, or calls a gateway with the right "admin".
	AudienceOperator
)

// Opens reports whether texts of this visibility are shown to the audience, if their author calls them safe.
func (v Visibility) Opens(a Audience) bool {
	least := slices.Index([]Visibility{VisibilityUserVisible, VisibilityUserAudit, VisibilityDebug}, v)
	return least >= 0 && int(a) >= least
}

// HiddenRemark replaces a remark of a plugin that the audience may not read.
const HiddenRemark = "a remark of the plugin; its words are in the operator's log"

// Remark converts a diagnostic worded by a plugin into one of the host's: its words,
// and a code that is not a [ValidCode], move to Detail, and Message is neutral until
// [Diagnostic.For] opens it. The caller sets Plugin and Subscription.
func (d Diagnostic) Remark(v Visibility) Diagnostic {
	d.Detail, d.Message, d.Visibility = d.Message, HiddenRemark, v
	if d.Detail == "" {
		d.Message = ""
	}
	if !ValidCode(d.Code) {
		d.Detail, d.SafeForUser = joinWords(d.Code, d.Detail), false
		d.Code, d.Message = CodeInvalidCode, HiddenRemark
	}
	if d.Severity != SeverityWarning && d.Severity != SeverityError {
		d.Severity = SeverityInfo
	}
	d.Cause, d.OtherSubscription, d.Slot = "", "", "" // the engine's own
	return d
}

// For returns the diagnostic as the audience may see it: Message is the whole text if
// its author calls it safe and its visibility opens it. Detail is empty in the result.
func (d Diagnostic) For(a Audience) Diagnostic {
	if d.Detail != "" && d.SafeForUser && d.Visibility.Opens(a) {
		d.Message = d.Detail
	}
	d.Detail = ""
	return d
}

// DiagnosticsFor returns a copy of the list as the audience may see it; never nil.
func DiagnosticsFor(list []Diagnostic, a Audience) []Diagnostic {
	out := make([]Diagnostic, len(list))
	for i := range list {
		out[i] = list[i].For(a)
	}
	return out
}

// For is [Diagnostic.For] for errors; nil stays nil. The result wraps what e wraps.
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

// For is [Diagnostic.For] for contributions: it hides the words of a diagnostic and the
// details of an audit event that are not open to a. Whole is nil in the result.
func (c Applied) For(a Audience) Applied {
	if c.Whole != nil && c.SafeForUser && c.Visibility.Opens(a) {
		c.Value = c.Whole
	}
	c.Whole = nil
	return c
}

// Conceal makes Value what every audience may see and keeps the original in Whole. Only
// diagnostics and audit events change; other kinds are content that was granted.
func (c *Applied) Conceal(v Visibility) {
	switch value := c.Value.(type) {
	case *ManifestDiagnostic:
		shown := *value
		if shown.Message != "" {
			shown.Message = HiddenRemark
		}
		c.Value, c.Whole, c.SafeForUser, c.Visibility = &shown, value, value.SafeForUser, v
	case *Audit:
		shown := *value
		shown.Details = nil
		c.Value, c.Whole, c.SafeForUser, c.Visibility = &shown, value, value.SafeForUser, v
	}
}

// For returns the outcome as the audience may see it; nil stays nil. It shares memory with o.
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

// wordsError is a safe sentence with a plugin's words apart from it.
type wordsError struct {
	message, detail string
	err             error
}

// WithDetail returns an error whose text is the message alone. The detail holds words
// of a plugin, for [DetailOf]; err may be nil.
func WithDetail(message, detail string, err error) error {
	return &wordsError{message, detail, err}
}

func (e *wordsError) Error() string { return e.message }

// Unwrap returns the cause.
func (e *wordsError) Unwrap() error { return e.err }

// maxDetail bounds the words of one failure in logs, events and the plugin's row, in bytes.
const maxDetail = 8 << 10

// DetailOf returns the plugins' words that an error and those it wraps hold apart from
// their texts, cut at 8 KiB; "" if there are none. They are for the operator's log.
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

// Whole returns an error's text followed by its [DetailOf]; "" for nil. Use it to log
// an error that a plugin may have caused.
func Whole(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if detail := DetailOf(err); detail != "" {
		text += ": " + detail
	}
	return text
}

func joinWords(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "; ")
}

// CodeInvalidCode means: a plugin's own code is not a word; its diagnostic is in the log.
const CodeInvalidCode = "invalid_code"

const maxCode = 64 // bytes

// ValidCode reports whether s may be a code that a plugin chooses. Codes leave the host whatever the visibility, so
// they must not be sentences: a lower-case letter, then lower-case letters, digits, "_" and ".", at most 64 bytes.
func ValidCode(s string) bool {
	if s == "" || len(s) > maxCode || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '.'
	}) < 0
}
