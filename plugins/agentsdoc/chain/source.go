package chain

// Scope says where in the order of precedence a source comes from.
type Scope string

// The scopes, farthest first. A chain of files holds global and project ones;
// the others belong to parts of the plugin that add to a chain.
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

// ReasonBlank is the reason of a skipped source without any text. All other
// reasons are codes of diagnostics.
const ReasonBlank = "blank"

// Source is one file of a chain: one that is used, or one that would be but for
// its reason.
type Source struct {
	// Path is the absolute path along the working folder as it was written.
	Path string `json:"path"`
	// RealPath is where the file really is, behind links and stubs; empty where
	// that could not be found out.
	RealPath string `json:"real_path"`
	// Display is Path relative to the root, with slashes, or ~ for the global
	// file. It is exact: [PrintPath] makes it fit for a prompt.
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
	// Reason is empty for a source that is whole, and a [Code] or [ReasonBlank]
	// otherwise.
	Reason string `json:"reason"`
	// DuplicateOf is the Path of the nearer source with the same file or text.
	DuplicateOf string `json:"duplicate_of"`

	// Text is the normalised text without newlines at its end; set only while
	// the source is of use. Of a text beyond the limit of one file only the
	// beginning is here.
	Text string `json:"-"`

	origin origin
}

// origin is what a source's text came from, as far as it matters later.
type origin struct {
	raw   string // the bytes that became Text, where these differ
	chars int    // length of the whole text
	long  bool   // the file goes on behind Text
	sum   textSum
	id    FileID
}

// usable reports whether a source has text that may be rendered.
func (s *Source) usable() bool { return s.State == StateKept && s.Text != "" }

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

// Report is a chain and its rendering as the command line prints them.
type Report struct {
	Root      string   `json:"root"`
	RootFound bool     `json:"root_found"`
	Dir       string   `json:"dir"`
	Preset    string   `json:"preset"`
	Options   Options  `json:"options"`
	Sources   []Source `json:"sources"`
	Text      string   `json:"text"`
	// Message is the whole as it is put before the model, frame included; empty
	// when Text is.
	Message     string       `json:"message"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// NewReport joins a chain with its rendering. The message comes from whoever
// owns the frame, and is dropped when there is no text. The lists are shared
// with neither argument.
func NewReport(c Chain, r Rendering, message string) Report {
	if r.Text == "" {
		message = ""
	}
	rows := make([]Diagnostic, 0, len(c.Diagnostics)+len(r.Diagnostics))
	rows = append(append(rows, c.Diagnostics...), r.Diagnostics...)
	return Report{
		Root: c.Root, RootFound: c.RootFound, Dir: c.Dir,
		Preset: c.Options.Preset, Options: c.Options,
		Sources: append([]Source{}, r.Sources...), Text: r.Text, Message: message,
		Diagnostics: rows,
	}
}
