// Package textruletest helps to test what goes through the rules of package
// textrule: it reads bodies back, and makes texts that try to break the rules.
//
// It is no part of the plugin, and imports nothing of it: what it knows, it
// knows from the documentation. Where to start: [Unescape] and [Hostile].
//
// Stability: experimental.
package textruletest

import (
	"strings"
	"unicode"
)

// Unescape undoes Escape of package textrule. It is written from the
// documentation of package chain, apart from the code that it checks: each rule
// is looked for in the text without the characters that do not show.
func Unescape(body string) string {
	list := strings.Split(body, "\n")
	for i, line := range list {
		if strings.HasPrefix(line, `\`) && beginsLikeOurs(shown(line)) {
			line = line[1:]
		}
		var out strings.Builder
		for line != "" {
			out.WriteByte(line[0])
			isTag := strings.HasPrefix(line, `<\`) && beginsLikeTag(shown(line))
			line = line[1:]
			if isTag {
				line = line[1:]
			}
		}
		list[i] = out.String()
	}
	return strings.Join(list, "\n")
}

// beginsLikeOurs reports whether a line begins, after backslashes, with one of
// the words of delimiters and markers.
func beginsLikeOurs(line string) bool {
	line = strings.TrimLeft(line, `\`)
	return strings.HasPrefix(line, "[source:") || strings.HasPrefix(line, "[truncated:") || strings.HasPrefix(line, "[omitted:")
}

// beginsLikeTag reports whether a text begins with a tag of the frame or the
// boundary of the prompt, with backslashes inside.
func beginsLikeTag(text string) bool {
	text = strings.TrimLeft(text[1:], `\`)
	if strings.HasPrefix(text, "!-- grapnel:dynamic") {
		return true
	}
	const tag = "AGENTS_MD"
	text = strings.TrimPrefix(text, "/")
	return len(text) >= len(tag) && strings.EqualFold(text[:len(tag)], tag) && strings.ToUpper(text[:len(tag)]) == tag
}

// shown drops the characters that do not show.
func shown(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.In(c, unicode.Cf, unicode.Variation_Selector), c >= 0xE0000 && c <= 0xE0FFF,
			strings.ContainsRune("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0", c):
			return -1
		}
		return c
	}, s)
}
