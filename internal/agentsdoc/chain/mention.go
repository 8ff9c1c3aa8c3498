package chain

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// mention is a place in a text that names a file to import.
type mention struct {
	start, end int // of what an import replaces
	target     string
}

// gap is a place of a text from which lines of its file were removed.
type gap struct{ at, lines int }

// mentionLine returns what finds the line of the file that a byte of its text stands in.
func mentionLine(text string, gaps []gap) func(at int) int {
	return func(at int) int {
		line := 1 + strings.Count(text[:at], "\n")
		for _, g := range gaps {
			if g.at <= at {
				line += g.lines
			}
		}
		return line
	}
}

// mentions finds what a text imports, in its order.
func (s ImportStyle) mentions(text string) []mention {
	if strings.IndexByte(text, '@') < 0 {
		return nil
	}
	switch s {
	case ImportLines:
		return lineMentions(text)
	case ImportInline:
		return wordMentions(text)
	case ImportListed:
		return proseMentions(text)
	default:
		return nil
	}
}

// lineMentions finds the lines of ImportLines.
func lineMentions(text string) (list []mention) {
	var code fence
	at := 0
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		target, ok := strings.CutPrefix(strings.TrimRight(bare, " \t"), "@")
		if !code.fenced(bare) && ok && isLineTarget(target) {
			list = append(list, mention{at, at + len(bare), target})
		}
		at += len(line)
	}
	return list
}

// isLineTarget tells a path from the name of a person or a decorator.
func isLineTarget(target string) bool {
	if strings.ContainsFunc(target, isControl) {
		return false
	}
	if strings.HasPrefix(target, "./") || strings.HasPrefix(target, "../") {
		return true
	}
	return strings.HasSuffix(target, ".md") && !strings.ContainsAny(target, " \t:") && !strings.ContainsAny(target[:1], "/@~")
}

// wordMentions finds words that begin with "@" outside of backquotes, as Gemini CLI does: findImports and
// findCodeRegions of packages/core/src/utils/memoryImportProcessor.ts (google-gemini/gemini-cli 5411f113, the same in
// 0.61.0).
func wordMentions(text string) (list []mention) {
	regions := codeRegions(text)
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '@')
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		if i > 0 && !strings.ContainsRune(" \t\r\n", rune(text[i-1])) {
			continue
		}
		end := len(text)
		if n := strings.IndexAny(text[i:], " \t\r\n"); n >= 0 {
			end = i + n
		}
		at = end + 1
		for len(regions) > 0 && regions[0][1] <= i {
			regions = regions[1:]
		}
		inCode := len(regions) > 0 && regions[0][0] <= i
		if target := text[i+1 : end]; !inCode && target != "" && (target[0] == '.' || target[0] == '/' || isLetter(target[0])) {
			list = append(list, mention{i, end, target})
		}
	}
	return list
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

type run struct{ start, end int }

// backquotes finds the runs of backquotes.
func backquotes(text string) (runs []run) {
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '`')
		if i < 0 {
			break
		}
		start := at + i
		for at = start; at < len(text) && text[at] == '`'; {
			at++
		}
		runs = append(runs, run{start, at})
	}
	return runs
}

// codeRegions finds what the regular expression "(`+)([\s\S]*?)\1" matches, in linear time: from as many backquotes
// as come again, to where they do first.
func codeRegions(text string) (regions [][2]int) {
	runs := backquotes(text)
	longest := make([]int, len(runs)+1) // of the runs from here on
	for i := len(runs) - 1; i >= 0; i-- {
		longest[i] = max(longest[i+1], runs[i].end-runs[i].start)
	}
	for at, i := 0, 0; i < len(runs); {
		start := max(at, runs[i].start)
		size := runs[i].end - start
		n := max(min(size, longest[i+1]), size/2)
		if n <= 0 {
			i++
			continue
		}
		at = start + 2*n
		if at > runs[i].end {
			for i++; runs[i].end-runs[i].start < n; {
				i++
			}
			at = runs[i].start + n
		}
		regions = append(regions, [2]int{start, at})
	}
	return regions
}

// proseMentions finds "@path" at the beginning of words that are neither code nor a comment, as Claude Code does
// (2.1.332, the text tokens of its Markdown parser). The end of a mention is its beginning: nothing replaces it.
func proseMentions(text string) (list []mention) {
	prose := maskCode(text)
	for at := 0; at < len(prose); {
		i := bytes.IndexByte(prose[at:], '@')
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		last, _ := utf8.DecodeLastRune(prose[:i])
		if i > 0 && last != 0 && !trailingSpace(last) {
			continue
		}
		target := proseTarget(string(prose[i+1 : min(len(prose), i+1+maxPath)]))
		if target, _, _ = strings.Cut(target, "#"); isProseTarget(target) {
			list = append(list, mention{i, i, strings.ReplaceAll(target, `\ `, " ")})
		}
	}
	return list
}

// proseTarget is the beginning of a text without white space, apart from escaped spaces.
func proseTarget(text string) string {
	for i, c := range text {
		escaped := i > 0 && text[i-1] == '\\' && c == ' '
		if c == 0 || c == '\\' && !strings.HasPrefix(text[i+1:], " ") || trailingSpace(c) && !escaped {
			return text[:i]
		}
	}
	return text
}

func isProseTarget(target string) bool {
	if target == "" || target == "/" || strings.ContainsFunc(target, isControl) {
		return false
	}
	c := target[0]
	return c == '/' || c == '.' || c == '_' || c == '-' || isLetter(c) || c >= '0' && c <= '9' || strings.HasPrefix(target, "~/")
}

// maskCode is a Markdown text with NUL for each byte that is not text: code, comments, tags, and marks of emphasis and
// links.
func maskCode(text string) []byte {
	out := []byte(text)
	var b blocks
	paragraph, item := 0, false
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := strings.TrimRight(text[at:end], "\r\n")
		kind := b.next(line)
		if kind != lineGoesOn {
			maskInline(out[paragraph:at], item)
			paragraph, item = at, len(b.columns) > 0
		}
		if kind == lineCode {
			clear(out[at : at+len(line)])
			paragraph = end
		}
		at = end
	}
	maskInline(out[paragraph:], item)
	return out
}
