package chain

import (
	"cmp"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// Scope says where in the order of precedence a source comes from.
type Scope string

// The scopes, farthest first. Nested ones are no part of a chain: they belong to
// the part of the plugin that delivers files of folders that are touched.
const (
	ScopeManaged Scope = "managed"
	ScopeGlobal  Scope = "global"
	ScopeProject Scope = "project"
	ScopeLocal   Scope = "local"
	ScopeNested  Scope = "nested"
)

// userWide reports whether a source of the scope applies to all trees of its
// user. Such sources come first in the chain and keep a larger floor.
func (s Scope) userWide() bool { return s == ScopeManaged || s == ScopeGlobal }

// State says what became of a source.
type State string

// The states. [Resolve] gives kept, skipped and duplicate; [Render] turns kept
// into truncated or omitted where there is no room.
const (
	StateKept      State = "kept"
	StateTruncated State = "truncated"
	StateOmitted   State = "omitted"
	StateSkipped   State = "skipped"
	StateDuplicate State = "duplicate"
)

// Reasons of skipped sources that are no problem. All other reasons are codes of
// diagnostics.
const (
	// ReasonBlank is a source without any text.
	ReasonBlank = "blank"
	// ReasonExcluded is a file that the options exclude.
	ReasonExcluded = "excluded"
)

// Source is one file of a chain: one that is used, or one that would be but for
// its reason.
type Source struct {
	// Path is the absolute path along the working folder as it was written.
	Path string `json:"path"`
	// RealPath is where the file really is, behind links and stubs; empty where
	// that could not be found out.
	RealPath string `json:"real_path"`
	// Display is Path relative to the root, with slashes; ~ for the global file,
	// and Path itself for the managed one. It is exact: [PrintPath] makes it fit
	// for a prompt.
	Display string `json:"display"`
	Scope   Scope  `json:"scope"`
	// Bytes is the size on disk.
	Bytes int64 `json:"bytes"`
	// Kept is how many bytes of the file the text stands for. [Resolve] leaves
	// it 0.
	Kept int64 `json:"kept"`
	// DeliveredBytes is the size of the body in the text, after escaping and
	// with the LF that ends it. [Resolve] leaves it 0.
	DeliveredBytes int `json:"delivered_bytes"`
	// SHA256 is the hash, in hex, of the bytes that were read.
	SHA256 string `json:"sha256"`
	// MTimeMs is the time of the last change in milliseconds since 1970.
	MTimeMs int64 `json:"mtimeMs"`
	State   State `json:"state"`
	// Reason is empty for a source that is whole, and a [Code], [ReasonBlank] or
	// [ReasonExcluded] otherwise.
	Reason string `json:"reason"`
	// DuplicateOf is the Path of the nearer source with the same file or text.
	DuplicateOf string `json:"duplicate_of"`

	// Text is the file's text; set only while the source is of use. In
	// LayoutDelimited it is without newlines at its end. Of a text beyond what
	// the budget can hold of one file only the beginning is here.
	Text string `json:"-"`

	origin origin
	// imports is the hash of the text with what it imports, where it does.
	imports string
}

// Digest is the hash, in hex, that tells one version of a source from another:
// SHA256, and for a file that imports others that of the text with all of them.
func (s *Source) Digest() string { return cmp.Or(s.imports, s.SHA256) }

// origin is what a source's text came from, as far as it matters later.
type origin struct {
	raw       string // the bytes that became Text, where these differ
	form      textrule.Form
	inserts   []insert // imported texts, in the order of Text
	chars     int      // length of the whole text, where Text is not all
	long      bool     // the file goes on behind Text
	untrusted bool
	sum       textSum
	id        fsview.FileID
}

// usable reports whether a source has text that may be rendered.
func (s *Source) usable() bool { return s.State == StateKept && s.Text != "" }

// named reports whether only the name of a source may be rendered.
func (s *Source) named() bool {
	return s.State == StateSkipped && s.Reason == string(CodeUntrustedRoot)
}

// sourceBytes counts the bytes of the file that the first n bytes of Text stand
// for. Imported text stands for the line that named it.
func (s *Source) sourceBytes(n int) int {
	n = ownBytes(s.origin.inserts, n)
	if s.origin.raw == "" {
		return n
	}
	return s.origin.form.SourceBytes(s.origin.raw, n)
}

// Chain is the answer of [Resolve].
type Chain struct {
	// Root is the folder that the chain begins at: the working folder where no
	// marker was found, and empty where there is no chain.
	Root string `json:"root"`
	// RootFound says that a marker or the options named the root.
	RootFound bool `json:"root_found"`
	// Dir is the working folder, cleaned.
	Dir     string  `json:"dir"`
	Options Options `json:"options"`
	// Sources are in the order managed, global, root to working folder.
	Sources     []Source     `json:"sources"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// Changed reports whether a file, seen twice under one path, counts as another
// the second time. Without a rule it is judged by its hash.
func Changed(rule option.ChangedWhen, before, after *Source) bool {
	switch rule {
	case option.ChangedNeverResolved:
		return false
	case option.ChangedByTimeOrHash:
		return before.MTimeMs != after.MTimeMs || before.Digest() != after.Digest()
	default:
		return before.Digest() != after.Digest()
	}
}
