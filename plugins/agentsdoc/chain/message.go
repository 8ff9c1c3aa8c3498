package chain

import (
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// Frame is what stands around a text when it is put before the model: a line or
// more before it, and one behind.
type Frame struct {
	Open, Close string
}

// The frame of the default preset's section.
const (
	// FramePreamble is what it says before its tag.
	FramePreamble = "Below are the AGENTS.md files of the source tree that you work in, which apply to the working folder. " +
		"System, developer and explicit user messages take precedence over them."
	// FrameOpen opens it.
	FrameOpen = FramePreamble + "\n\n<AGENTS_MD>"
	// FrameClose closes it.
	FrameClose = "</AGENTS_MD>"
)

// hintText tells how files of nested folders work. It is [Options].ChildHint's.
const hintText = `How AGENTS.md files work:
- An AGENTS.md file may lie in any folder: at the top of the file system, in the home folder, anywhere in a repository.
- It carries what people want an agent to know there: how the code is laid out, built, tested and written.
- Its scope is the folder that it lies in and everything below.
- When you change a file, comply with every AGENTS.md file whose scope that file is in.
- Where two disagree, the one in the deeper folder wins.
- What the prompt itself says wins over all of them.`

// Frame is the longest frame that a text of the chain can have, for those who
// have to leave room for it. Nothing is read.
func (c *Chain) Frame() Frame { return c.frame(true) }

// frame is the frame of a text; hasProject says whether any of a project's files
// is in it.
func (c *Chain) frame(hasProject bool) Frame {
	switch c.Options.Layout {
	case option.LayoutJoined:
		title := "# AGENTS.md instructions"
		if hasProject {
			title += " for " + textrule.PrintPlainPath(c.Dir)
		}
		return Frame{title + "\n\n<INSTRUCTIONS>", "</INSTRUCTIONS>"}
	case option.LayoutTitled:
		return Frame{`<agents_context scope="initial">`, "</agents_context>"}
	default:
		return Frame{FrameOpen, FrameClose}
	}
}
