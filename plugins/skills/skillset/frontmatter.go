package skillset

import (
	"strings"
	"unicode/utf8"
)

// Bounds of the open layout.
const (
	maxName        = 64
	maxDescription = 1024
)

// maxHeader bounds the bytes of the front matter. Name, description and
// compatibility at their longest leave room for as much again.
const maxHeader = 8 << 10

// header is what the front matter says.
type header struct {
	name, description string
	globs             []Glob
	// badGlobs are the numbers of patterns that cannot be read, from 1.
	badGlobs []int
	// hidden counts characters of the description that were replaced.
	hidden int
	// notForModels says that the author keeps the skill from models.
	notForModels bool
}

// parseSkill takes the text of a SKILL.md apart.
func parseSkill(text string) (header, string, *problem) {
	text = normalise(text)
	yaml, body, p := split(text)
	if p != nil {
		return header{}, "", p
	}
	fields, p := parseFields(yaml)
	if p != nil {
		return header{}, "", p
	}
	h, p := fields.header()
	return h, strings.Trim(body, "\n"), p
}

// split finds the front matter and what follows it.
func split(text string) (yaml, body string, p *problem) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", problemf(CodeFrontMatter, "it does not begin with a line ---")
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			return rest[:at], rest[min(len(rest), at+len(line)+1):], nil
		}
		if at += len(line) + 1; at > maxHeader {
			return "", "", problemf(CodeFrontMatter, "the front matter does not end within %d bytes", maxHeader)
		}
	}
	return "", "", problemf(CodeFrontMatter, "the front matter does not end: a second line --- is missing")
}

// header checks the fields.
func (f fields) header() (header, *problem) {
	h := header{notForModels: f.bare["disable-model-invocation"] == "true"}
	var p *problem
	if h.name, p = f.name(); p != nil {
		return header{}, p
	}
	if h.description, h.hidden, p = f.description(); p != nil {
		return header{}, p
	}
	list := f.lists["paths"]
	if list == nil {
		list = f.lists["metadata.paths"]
	}
	for i, pattern := range list {
		glob, err := ParseGlob(pattern)
		if err != nil || i >= maxGlobs {
			h.badGlobs = append(h.badGlobs, i+1)
			continue
		}
		h.globs = append(h.globs, glob)
	}
	return h, nil
}

func (f fields) name() (string, *problem) {
	name, ok := f.texts["name"]
	switch {
	case !ok:
		return "", problemf(CodeName, "the front matter has no name that is a text")
	case !ValidSlug(name):
		return "", problemf(CodeName, "the name is not 1 to 64 of a-z, 0-9 and single hyphens inside")
	}
	return name, nil
}

func (f fields) description() (string, int, *problem) {
	raw, ok := f.texts["description"]
	if !ok || strings.TrimSpace(raw) == "" {
		return "", 0, problemf(CodeDescription, "the front matter has no description that is a text")
	}
	// Lines are joined first: the newline of a folded text hides nothing.
	text, hidden := reveal(oneLine(raw))
	if n := utf8.RuneCountInString(text); n > maxDescription {
		return "", 0, problemf(CodeDescription, "the description has %d characters; at most %d are allowed", n, maxDescription)
	}
	return text, hidden, nil
}

// ValidSlug reports whether a text may name a skill: 1 to 64 of a-z, 0-9 and
// hyphens, which stand alone and neither first nor last.
func ValidSlug(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
