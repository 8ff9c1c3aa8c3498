package plugintest

import (
	"fmt"
	"strings"
)

// archive is a file in txtar format: a comment, then files, each begun by a line
// "-- NAME --".
type archive struct {
	comment string
	files   []archived
}

type archived struct{ name, text string }

// parseArchive reads the format.
func parseArchive(text string) archive {
	var a archive
	into := &a.comment
	for line := range strings.Lines(text) {
		if name, ok := archivedName(line); ok {
			a.files = append(a.files, archived{name: name})
			into = &a.files[len(a.files)-1].text
			continue
		}
		*into += line
	}
	return a
}

// archivedName returns the name in a line that begins a file.
func archivedName(line string) (string, bool) {
	rest, begins := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "-- ")
	name, ends := strings.CutSuffix(rest, " --")
	name = strings.TrimSpace(name)
	return name, begins && ends && name != ""
}

// String writes the format.
func (a archive) String() string {
	var out strings.Builder
	out.WriteString(a.comment)
	for _, f := range a.files {
		fmt.Fprintf(&out, "-- %s --\n%s", f.name, f.text)
	}
	return out.String()
}

// take removes a file and returns its text, with the newline at its end cut off.
func (a *archive) take(name string) string {
	for i, f := range a.files {
		if f.name == name {
			a.files = append(a.files[:i:i], a.files[i+1:]...)
			return strings.TrimSuffix(f.text, "\n")
		}
	}
	return ""
}

// set replaces the text of a file, or adds it at the end.
func (a *archive) set(name, text string) {
	for i := range a.files {
		if a.files[i].name == name {
			a.files[i].text = text
			return
		}
	}
	a.files = append(a.files, archived{name, text})
}
