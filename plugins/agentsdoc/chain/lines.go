package chain

import (
	"fmt"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// PrintPath makes a path fit to stand in a prompt, as the lines of
// LayoutDelimited have it: see [textrule.PrintPath].
func PrintPath(path string) string { return textrule.PrintPath(path) }

// ruleText heads each text.
const ruleText = `These are the instruction files that apply here, from the most general to the most specific.
Where two disagree, the later one is more specific and wins. System, developer and explicit user messages win over all of them.
`

// lazyText follows it while files of other folders are delivered on touch.
const lazyText = `- The files below are loaded already: do not search for instruction files again on each turn.
- Look for more only when you are about to read or edit in a folder that is new to you.
- When a reminder lists files, read them and apply them before you change anything in their folders.
- Do not read the same path twice.
- After a session.resume.diff reminder, take in what it says has changed before you go on.
`

// header is the text before the first source.
func header(o *Options) string {
	text := ruleText
	if o.Lazy {
		text += lazyText
	}
	if o.ChildHint {
		text += "\n" + hintText + "\n"
	}
	return text + "\n"
}

// delimiterLine begins a source.
func delimiterLine(path string, scope Scope, kept, total int64) string {
	return fmt.Sprintf("%s \"%s\", scope %s, kept %d of %d bytes]\n", textrule.SourceWord, path, scope, kept, total)
}

// truncatedLine ends a source that was cut.
func truncatedLine(path string, kept, total int64) string {
	return fmt.Sprintf("%s %s, kept %d of %d bytes]\n", textrule.TruncatedWord, path, kept, total)
}

// omittedLine stands for a source without room.
func omittedLine(path string, total int64) string {
	return fmt.Sprintf("%s %s, %d bytes, budget exhausted]\n", textrule.OmittedWord, path, total)
}

// untrustedLine stands for a source of a root that is not trusted.
func untrustedLine(path string, total int64) string {
	return fmt.Sprintf("%s %s, %d bytes, untrusted root]\n", textrule.OmittedWord, path, total)
}

// omittedFilesLine stands for all sources without text of their own.
func omittedFilesLine(n int) string {
	return fmt.Sprintf("%s %d files, budget exhausted]\n", textrule.OmittedWord, n)
}
