package skillset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/pathglob"
	"github.com/grapnelhq/grapnel/phases"
)

// Skill is one skill.
type Skill struct {
	Slug, Description string          // the name; Description is one line
	Globs             []pathglob.Glob // the files that the skill is about; often none
	Body              string          // the normalised text after the front matter
	Dir               string          // the skill's directory, an absolute path
	// Label is the path of SKILL.md from the root of the source tree with slashes, or an absolute one. Print it with
	// sdk.PlainName.
	Label string

	at place
}

// Matches reports whether a glob matches a path as [Set.Rel] returns it.
func (s *Skill) Matches(rel string) bool {
	return slices.ContainsFunc(s.Globs, func(g pathglob.Glob) bool { return g.Match(rel) })
}

// place is a directory below base, which bounds links and lies within the boundary, if there is one.
type place struct{ boundary, base, rel string }

func (p place) path() string            { return filepath.Join(p.base, p.rel) }
func (p place) below(name string) place { return place{p.boundary, p.base, filepath.Join(p.rel, name)} }

// Set is what was found for a working directory. It is immutable and safe for concurrent use.
type Set struct {
	Root        string  // the real root of the source tree; "" without a working directory
	Skills      []Skill // sorted by slug, which is unique
	Diagnostics []Diagnostic

	named string // the root as the working directory's path was written, or ""
	seen  []look
}

// Find returns the skill of a slug, or nil.
func (s *Set) Find(slug string) *Skill {
	i, ok := slices.BinarySearchFunc(s.Skills, slug, func(sk Skill, slug string) int { return strings.Compare(sk.Slug, slug) })
	if !ok {
		return nil
	}
	return &s.Skills[i]
}

// Rel returns an absolute path relative to the root of the source tree (itself "."), with slashes; not ok outside. It
// looks at names only.
func (s *Set) Rel(path string) (string, bool) {
	for _, root := range []string{s.Root, s.named} {
		if root == "" {
			continue
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// look is a path that the set depends on, and what it led to; nil for nothing.
type look struct {
	path string
	info fs.FileInfo
}

// Fresh reports whether [Resolve] would see the same files: identity, size, mode and time of all are as then. It
// opens nothing.
func (s *Set) Fresh() bool {
	return !slices.ContainsFunc(s.seen, func(l look) bool {
		info, err := os.Stat(l.path)
		if err != nil || l.info == nil {
			return err == nil || l.info != nil
		}
		return !os.SameFile(info, l.info) || info.Size() != l.info.Size() || !info.ModTime().Equal(l.info.ModTime()) || info.Mode() != l.info.Mode()
	})
}

// unsettled is how long a file may change unnoticed on the coarsest file systems.
const unsettled = 2 * time.Second

// Settled reports whether [Set.Fresh] would see the next change of the files: the set was resolved at now, long
// enough after the last one.
func (s *Set) Settled(now time.Time) bool {
	return !slices.ContainsFunc(s.seen, func(l look) bool {
		return l.info != nil && now.Sub(l.info.ModTime()).Abs() < unsettled
	})
}

// hides reports whether a character may disguise a text: controls, format characters, fillers and variation
// selectors, but not joiners and the two selectors of emoji.
func hides(c rune) bool {
	switch c {
	case '\n', '\t', '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x3164, 0xFFA0:
		return true
	}
	if c < 0x7F {
		return c < ' '
	}
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) && !unicode.Is(unicode.Prepended_Concatenation_Mark, c) ||
		unicode.Is(unicode.Variation_Selector, c) || c >= 0xE0000 && c <= 0xE0FFF
}

// normalise returns s with LF newlines and without a byte order mark.
func normalise(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(s, "\ufeff"))
}

// notUTF8 counts the bytes of a text that are not UTF-8.
func notUTF8(s string) (n int) {
	for i, c := range s {
		if c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			n++
		}
	}
	return n
}

// reveal replaces characters that hide, and invalid UTF-8, by U+FFFD and counts them.
func reveal(s string) (string, int) {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hides) {
		return s, 0
	}
	count := 0
	var out strings.Builder
	out.Grow(len(s))
	for i, c := range s {
		if hides(c) || c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			count++
			c = utf8.RuneError
		}
		out.WriteRune(c)
	}
	return out.String(), count
}

// Code names a kind of problem.
type Code string

// The codes.
const (
	CodeDuplicate    Code = "duplicate_skill"           // a slug that an earlier directory has
	CodeFrontMatter  Code = "invalid_front_matter"      // front matter that is missing or unreadable
	CodeName         Code = "invalid_name"              // a name that is missing, malformed, or not the directory's. The skill stays
	CodeDescription  Code = "invalid_description"       // a description that is missing, or too long, with which the skill stays
	CodePaths        Code = "invalid_paths"             // an unreadable glob. The skill stays, without it
	CodeHidden       Code = "hidden_characters"         // text in which characters that hide were replaced
	CodeNotForModels Code = "model_invocation_disabled" // a skill whose author keeps it from models
	CodeTooLarge     Code = "file_too_large"            // a file beyond the limits
	CodeLong         Code = "long_text"                 // a body of more lines than the format advises; only Lint reports it
	CodeTooMany      Code = "too_many"                  // more directories, entries or skills than are read
	CodeBinary       Code = "binary"                    // a file that is not text
	CodeMisplaced    Code = "misplaced_skill"           // a SKILL.md that is not looked for: by its spelling, or too deep
	// CodeNotRegular is a fifo, socket, device or directory in a file's place, or something else in a directory's.
	CodeNotRegular       Code = "not_regular"
	CodeSymlinkEscape    Code = "symlink_escape"    // a link out of what may be read
	CodeMissingDirectory Code = "missing_directory" // an absolute directory of the options that does not exist
	CodePermission       Code = "permission"        // something that may not be read
	CodeReadError        Code = "read_error"        // any other failure to read, such as a link loop
	CodeReadByAgent      Code = "read_by_agent"     // a skill that the agent lists by itself
)

// Severity is an error for an attack, after which a skill is not used, a warning for what somebody should fix, otherwise information.
func (c Code) Severity() phases.Severity {
	switch c {
	case CodeSymlinkEscape:
		return phases.SeverityError
	case CodeDuplicate, CodeNotForModels, CodeMissingDirectory, CodeReadByAgent:
		return phases.SeverityInfo
	default:
		return phases.SeverityWarning
	}
}

// Diagnostic is one problem, in the order of discovery.
type Diagnostic struct {
	Code     Code            `json:"code"`
	Severity phases.Severity `json:"severity"`
	Path     string          `json:"path"`   // exact; print it with sdk.PlainName
	Line     int             `json:"line"`   // of the file; 0 if it is about the whole
	Detail   string          `json:"detail"` // a sentence without text of any file
}

func problemf(code Code, format string, args ...any) *FileError {
	return &FileError{Code: code, Detail: fmt.Sprintf(format, args...)}
}

func problemOf(err error) *FileError {
	p := &FileError{Code: CodeReadError, Detail: fsview.Cause(err)}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Detail, p.gone = "does not exist", true
	case errors.Is(err, fs.ErrPermission):
		p.Code = CodePermission
	case errors.Is(err, errNotRegular), errors.Is(err, syscall.ENOTDIR):
		p.Code = CodeNotRegular
	}
	return p
}
