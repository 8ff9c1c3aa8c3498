// Package chain finds the AGENTS.md files that apply to a working directory and makes one bounded text of them.
//
// [Resolve] takes a view of a file system, a working directory and [Options], and returns a [Chain]: an ordered list of
// sources, farthest first. [Render] takes a chain and a [Budget], and returns a [Rendering]: the text, the fate of each
// source, and why. Both add a [Diagnostic] for each decision against a file; neither fails or keeps state between
// calls. [RenderForHost] gives what a prompt will have.
//
// A preset is a set of options. Those with the name of a tool give what the users of that tool are used to.
// What follows is LayoutDelimited, the default's; the other layouts are in list.go.
//
// # The text
//
// The text is a header, then the sources in chain order. A source is one delimiter line, its body, and, if the body
// was cut, one marker line:
//
//	[source: "PATH", scope SCOPE, kept K of N bytes]
//	BODY
//	[truncated: PATH, kept K of N bytes]
//
// A source without text may be one omission line at its place in the chain, or all of them together one line before
// the first source:
//
//	[omitted: PATH, N bytes, budget exhausted]
//	[omitted: N files, budget exhausted]
//	[omitted: PATH, N bytes, untrusted root]
//
// PATH is [Source].Display as sdk.PlainName prints it, SCOPE a [Scope]. N is the size of the file on disk and K
// counts how many of those bytes the body stands for; a body that is whole has K = N. Each line, the last of a body
// too, ends in LF.
//
// # Escaping
//
// A body cannot forge any of these lines, the tags of the section's frame, or the boundary of the compiled prompt:
//
//   - "[source:", "[truncated:" or "[omitted:" at the beginning of a line, after zero or more backslashes, gets one
//     more backslash before it. A line also begins after indentation and marks of quotes, lists or emphasis.
//   - In "<", zero or more backslashes, and then AGENTS_MD or /AGENTS_MD, or !-- grapnel:dynamic, one more backslash
//     follows the "<".
//
// Sequences are compared leniently (package text), whatever follows them.
//
// To read the text back: split it at its lines; a line that begins with one of the three words is ours; in all others
// remove one backslash where the rules above find a sequence with at least one. A cut never falls inside such a
// sequence, so this gives exactly what was kept of the source's text.
//
// # Text of a source
//
// One byte order mark is dropped, CRLF and a lone CR become LF, and each maximal piece of invalid UTF-8 becomes
// U+FFFD, as does a NUL. Newlines at the end are not part of the body.
package chain

import (
	"cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// Scope ranks where a source comes from.
type Scope string

// The scopes, farthest first. Nested sources are not part of a chain: package lazy delivers them when a tool touches
// their directory.
const (
	ScopeManaged Scope = "managed"
	ScopeGlobal  Scope = "global"
	ScopeProject Scope = "project"
	ScopeLocal   Scope = "local"
	ScopeNested  Scope = "nested"
)

// userWide reports whether a source of the scope applies to all trees of its user. Such sources come first in the
// chain and keep a larger floor.
func (s Scope) userWide() bool { return s == ScopeManaged || s == ScopeGlobal }

// State says how much of a source is used.
type State string

// The states. [Resolve] gives kept, skipped and duplicate; [Render] turns kept into truncated or omitted if the
// budget requires it.
const (
	StateKept      State = "kept"
	StateTruncated State = "truncated"
	StateOmitted   State = "omitted"
	StateSkipped   State = "skipped"
	StateDuplicate State = "duplicate"
)

// Reasons of skipped sources that are not problems. All other reasons are codes of diagnostics.
const (
	ReasonBlank     = "blank"     // there is no text
	ReasonExcluded  = "excluded"  // by the options
	ReasonUntrusted = "untrusted" // its root is not trusted, and not even its name is given
	ReasonScoped    = "scoped"    // a rule for certain paths
	ReasonManual    = "manual"    // a rule that a model or a person would have to choose
)

// Source is one file of a chain: one that is used, or one that would be but for its reason.
type Source struct {
	// Path is the absolute path along the working directory as it was written.
	Path string `json:"path"`
	// RealPath is behind links and stubs; empty if unknown.
	RealPath string `json:"real_path"`
	// Display is Path relative to the root, with slashes; ~ for the global file, and Path itself for the managed one.
	// It is exact: sdk.PlainName makes it fit for a prompt.
	Display string `json:"display"`
	Scope   Scope  `json:"scope"`
	Bytes   int64  `json:"bytes"` // size on disk
	// Kept is how many bytes of the file the text stands for. [Resolve] leaves it 0.
	Kept int64 `json:"kept"`
	// DeliveredBytes is the size of the body in the text, after escaping and with its final LF. [Resolve] leaves it 0.
	DeliveredBytes int    `json:"delivered_bytes"`
	SHA256         string `json:"sha256"`  // of the bytes that were read, in hex
	MTimeMs        int64  `json:"mtimeMs"` // modification time in milliseconds since 1970
	State          State  `json:"state"`
	Reason         string `json:"reason"`       // empty for a whole source, else a [Code], [ReasonBlank] or [ReasonExcluded]
	DuplicateOf    string `json:"duplicate_of"` // the Path of the nearer source with the same file or text
	// ImportedBy is the Path of the source that named this one, if that is why it is here.
	ImportedBy string `json:"imported_by,omitempty"`
	// Imports are the files whose text stands within this one's, in its order.
	Imports []Import `json:"imports,omitempty"`
	// Globs are the paths that a rule is for, as in a .gitignore of its project. The source of such a rule is skipped,
	// as [ReasonScoped], and has its text, for package lazy.
	Globs []string `json:"globs,omitempty"`
	// Rule says that the file is one of a directory of rules.
	Rule bool `json:"rule,omitempty"`

	// Text is set only for usable sources. In LayoutDelimited it has no newlines at its end. Of a text beyond the limit
	// of one file it is only the beginning.
	Text string `json:"-"`

	origin       origin
	imports      string // hash of the text including imports, if there are any
	importedLine int    // of ImportedBy
}

// Digest identifies the version of a source, in hex: SHA256, or for a file that imports others the hash of the text
// with all of them.
func (s *Source) Digest() string { return cmp.Or(s.imports, s.SHA256) }

// origin is what a source's text was made from.
type origin struct {
	raw       string // the bytes that became Text, if different
	form      form
	inserts   []insert // imported texts, in the order of Text
	chars     int      // length of the whole text, if Text is cut
	long      bool     // the file goes on after Text
	share     Budget   // what a layout of whole files has left for a text that is cut; zero if all
	untrusted bool
	sum       textSum
	id        fsview.FileID
	base      string // the directory that the globs of a rule are relative to
}

// usable reports whether a source has text that may be rendered.
func (s *Source) usable() bool { return s.State == StateKept && s.Text != "" }

// named reports whether only the name of a source may be rendered.
func (s *Source) named() bool {
	return s.State == StateSkipped && s.Reason == string(CodeUntrustedRoot)
}

// sourceBytes counts the bytes of the file that the first n bytes of Text stand for. Imported text stands for the
// line that named it.
func (s *Source) sourceBytes(n int) int {
	n = ownBytes(s.origin.inserts, n)
	if s.origin.raw == "" {
		return n
	}
	return s.origin.form.sourceBytes(s.origin.raw, n)
}

// Chain is the answer of [Resolve].
type Chain struct {
	// Root is the directory that the chain begins at: the working directory if no marker was found, and empty without a
	// chain.
	Root      string  `json:"root"`
	RootFound bool    `json:"root_found"` // a marker or the options named the root
	Dir       string  `json:"dir"`        // the working directory, cleaned
	Options   Options `json:"options"`
	// Sources are in the order managed, global, root to working directory.
	Sources     []Source     `json:"sources"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// Report is a chain and its rendering as the command line prints them.
type Report struct {
	Root      string   `json:"root"`
	RootFound bool     `json:"root_found"`
	Dir       string   `json:"dir"`
	Preset    Preset   `json:"preset"`
	Options   Options  `json:"options"`
	Sources   []Source `json:"sources"`
	// Text is the instruction text, and Message the same in its frame; both may be empty.
	Text        string       `json:"text"`
	Message     string       `json:"message"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// NewReport joins a chain with its rendering, sharing no lists with them.
func NewReport(c Chain, r Rendering) Report {
	return Report{
		Root: c.Root, RootFound: c.RootFound, Dir: c.Dir,
		Preset: c.Options.Preset, Options: c.Options,
		Sources: append([]Source{}, r.Sources...), Text: r.Text, Message: r.Message(),
		Diagnostics: append(append([]Diagnostic{}, c.Diagnostics...), r.Diagnostics...),
	}
}
