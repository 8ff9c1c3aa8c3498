package reminder

import (
	"fmt"
	"slices"
	"strings"
)

// Change says why a file is named.
type Change string

// The changes.
const (
	New     Change = "new"
	Updated Change = "updated"
	Removed Change = "removed"
)

// File is a file that a reminder names.
type File struct {
	// Path is absolute and exact.
	Path    string
	MTimeMs int64
	Change  Change
	// Block is the text that is given of the file: package chain's lines and
	// what is between them, escaped, ended by LF. It is empty where only the
	// path is told, and [Escape] was not applied.
	Block string
}

// The lines that [Style.ResolvePaths] has around its list.
const (
	resolveHead = "More instruction files apply to this path:"
	resolveRead = "Read them, and follow them, before you change files in their folders or below."
	resolveText = "Their text follows. Follow it when you change files in their folders or below."
	resolveRest = "The text of some follows. Read the others, and follow all of them, before you change files in their folders or below."
)

// ResolvePaths names the instruction files that apply to what a tool touched,
// in the order given, with their text where that is given. Without files there
// is nothing to say.
func (s Style) ResolvePaths(files []File) Message {
	if len(files) == 0 {
		return Message{}
	}
	lines := []string{resolveHead}
	for _, f := range files {
		lines = append(lines, s.line(f))
	}
	lines = append(lines, ending(files, resolveRead, resolveText, resolveRest))
	return Message{Type: ResolvePaths, Text: withBlocks(lines, files)}
}

// The lines that [Style.FilesChanged] has around its list.
const (
	changedHead = "Instruction files that were loaded have changed:"
	changedRead = "Read them again, and go by what they say now, before you change files in their folders or below."
	changedText = "Their present text follows, and stands in for the one that was loaded."
	changedRest = "The present text of some follows. Read the others again, and go by what they say now."
	changedGone = "What was removed does not apply any more."
)

// FilesChanged says which files of those that were loaded are others now, which
// are new, and which are gone, with their text where that is given. Without
// files there is nothing to say.
func (s Style) FilesChanged(files []File) Message {
	if len(files) == 0 {
		return Message{}
	}
	lines := []string{changedHead}
	var there []File
	for _, f := range files {
		if f.Change == Removed {
			lines = append(lines, fmt.Sprintf("- %s (%s)", s.Path(f.Path), Removed))
			continue
		}
		there = append(there, f)
		lines = append(lines, fmt.Sprintf("- %s (%s, mtime: %d)", s.Path(f.Path), f.Change, f.MTimeMs))
	}
	if len(there) > 0 {
		lines = append(lines, ending(there, changedRead, changedText, changedRest))
	}
	if len(there) < len(files) {
		lines = append(lines, changedGone)
	}
	return Message{Type: FilesChanged, Text: withBlocks(lines, files)}
}

// line is the item of a file that is there.
func (s Style) line(f File) string {
	return fmt.Sprintf("- %s (mtime: %d)", s.Path(f.Path), f.MTimeMs)
}

// ending picks the sentence behind a list: for files of which none has its text
// here, all have it, or some.
func ending(files []File, none, all, some string) string {
	hasText := func(f File) bool { return f.Block != "" }
	switch i := slices.IndexFunc(files, hasText); {
	case i < 0:
		return none
	case !slices.ContainsFunc(files, func(f File) bool { return !hasText(f) }):
		return all
	default:
		return some
	}
}

// withBlocks joins lines and the texts of files.
func withBlocks(lines []string, files []File) string {
	var out strings.Builder
	out.WriteString(strings.Join(lines, "\n"))
	for _, f := range files {
		if f.Block != "" {
			text, _ := Escape(f.Block)
			out.WriteByte('\n')
			out.WriteString(strings.TrimSuffix(text, "\n"))
		}
	}
	return out.String()
}
