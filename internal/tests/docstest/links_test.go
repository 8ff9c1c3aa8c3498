package docstest

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// link is [text](target) outside code.
var link = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// TestLinks follows every link that stays in the repository, to the heading that
// it names. Links to elsewhere are not tried: a test needs no network.
func TestLinks(t *testing.T) {
	t.Parallel()

	followed := 0
	for _, d := range documents(t) {
		number := 0
		for line := range strings.Lines(prose(d)) {
			number++
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				u, err := url.Parse(m[1])
				if err != nil {
					t.Errorf("%s:%d: %v", d.name, number, err)
					continue
				}
				if u.IsAbs() {
					continue
				}
				followed++
				if problem := follow(t, d.name, u); problem != "" {
					t.Errorf("%s:%d: %s: %s", d.name, number, m[1], problem)
				}
			}
		}
	}
	if followed < 10 {
		t.Errorf("followed %d links: the search does not work", followed)
	}
}

// follow says what is wrong with a link from a document.
func follow(t *testing.T, from string, u *url.URL) string {
	t.Helper()
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	file := filepath.Join(root(t), filepath.FromSlash(target))
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if u.Fragment == "" {
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(prose(document{target, string(data)})) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' && anchor(title) == u.Fragment {
			return ""
		}
	}
	return "there is no such heading"
}

// anchor is what a heading is linked by on the usual forges.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}
