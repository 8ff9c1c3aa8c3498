package reminder

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MaxDetails is how many lines of one group [Style.ResumeDiff] has. More are
// counted in one.
const MaxDetails = 3

// Resumed is what a session that is taken up again is compared by. Lists are in
// the order in which they are told.
type Resumed struct {
	// Dir and Root are absolute paths, exact.
	DirFrom, DirTo         string
	RootFrom, RootTo       string
	MarkersFrom, MarkersTo []string
	// Look are the files in scope that the model has not seen as they are, and
	// Gone those that are not in scope any more.
	Look, Gone []File
	// Moved says that the session was not left, but goes on elsewhere.
	Moved bool
}

// The lines of [Style.ResumeDiff].
const (
	resumeHead  = "The session was resumed, and its context has changed:"
	movedHead   = "The context of the session has changed:"
	resumeSame  = "The session was resumed. Nothing has changed since it was left."
	resumeLook  = "Look again at the instruction files in scope before you go on:"
	resumeAgain = "Look again at the instruction files in scope before you go on."
	resumeGone  = "No longer in scope:"
)

// ResumeDiff says what differs from what a session was left with: there is
// always something to say, if only that nothing does. Of a session that was not
// left there is nothing to say then.
func (s Style) ResumeDiff(r Resumed) Message {
	var lines []string
	changes := len(r.Look) + len(r.Gone)
	for _, d := range s.differences(r) {
		if d.changed {
			changes++
		}
		if d.changed || s.Unchanged {
			lines = append(lines, fmt.Sprintf("- %s: %s -> %s", d.what, d.from, d.to))
		}
	}
	head := resumeHead
	switch {
	case changes == 0 && r.Moved:
		return Message{}
	case changes == 0:
		head = resumeSame
	case r.Moved:
		head = movedHead
	}
	lines = append([]string{head}, lines...)
	switch {
	case len(r.Look) > 0:
		lines = append(append(lines, resumeLook), s.group(r.Look, s.line)...)
	case changes > 0:
		lines = append(lines, resumeAgain)
	}
	if len(r.Gone) > 0 {
		gone := s.group(r.Gone, func(f File) string { return "- " + s.Path(f.Path) })
		lines = append(append(lines, resumeGone), gone...)
	}
	return Message{Type: ResumeDiff, Text: strings.Join(lines, "\n")}
}

// difference is a line of the context.
type difference struct {
	what, from, to string
	changed        bool
}

// differences are the lines of the context, printed. What is compared is what is
// exact: two paths may be printed alike.
func (s Style) differences(r Resumed) []difference {
	return []difference{
		{"cwd", s.folder(r.DirFrom), s.folder(r.DirTo), r.DirFrom != r.DirTo},
		{"root", s.folder(r.RootFrom), s.folder(r.RootTo), r.RootFrom != r.RootTo},
		{"markers", printList(r.MarkersFrom), printList(r.MarkersTo), !slices.Equal(r.MarkersFrom, r.MarkersTo)},
	}
}

// folder prints a folder, of which there may be none.
func (s Style) folder(path string) string {
	if path == "" {
		return "none"
	}
	return s.Path(path)
}

// group is the first lines of a list, and how many more there are.
func (s Style) group(files []File, line func(File) string) []string {
	var lines []string
	for i, f := range files {
		if i == MaxDetails {
			return append(lines, fmt.Sprintf("- and %d more", len(files)-i))
		}
		lines = append(lines, line(f))
	}
	return lines
}

// printList prints a list of names as JSON has it, on one line. JSON writes <
// and > by their numbers.
func printList(names []string) string {
	clean := []string{}
	for _, n := range names {
		clean = append(clean, name(n))
	}
	out, err := json.Marshal(clean)
	if err != nil {
		return "[]" // cannot be: these are strings
	}
	return string(out)
}
