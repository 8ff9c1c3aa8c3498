package compiler

import (
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
)

// errOrder says that a list of sections is none of a prompt.
var errOrder = errors.New("it stands behind one that comes later in a prompt")

// Rebuild puts a prompt together again from the sections of its manifest and
// their texts, which text finds by fingerprint: they are what [Output.Texts]
// gave. There is no cache plan in it.
//
// It takes the texts as they come: whether the prompt is the one that was
// compiled shows when [manifest.Fingerprint] of its parts is compared with the
// manifest's. An error is one of text, with the section named, or says that the
// sections do not stand in the order of a prompt.
func Rebuild(sections []manifest.Section, text func(fingerprint string) (string, error)) (Prompt, error) {
	p := Prompt{SystemMessages: []Message{}, UserMessages: []Message{}}
	var b strings.Builder
	dynamicFrom := -1
	last := partStable
	for i := range sections {
		s := &sections[i]
		now := partOf(s)
		rendered, err := text(s.Fingerprint)
		if now < last {
			err = errOrder
		}
		if err != nil {
			return Prompt{}, fmt.Errorf("rebuild: section %s: %w", s.SectionID, err)
		}
		if now > partDynamic {
			p.addMessage(s.SectionID, now, rendered)
		} else {
			b.WriteString(separator(i == 0, last, now))
			if now == partDynamic && dynamicFrom < 0 {
				dynamicFrom = b.Len()
			}
			b.WriteString(rendered)
		}
		last = now
	}
	p.split(b.String(), dynamicFrom)
	return p, nil
}
