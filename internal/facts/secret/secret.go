// Package secret finds what nobody should store in a text: keys, tokens, passwords, and numbers of cards, accounts and
// persons.
//
// It is a pure function of the text. A [Finding] names the rule and the place and holds nothing of the text, so it
// can go into a diagnostic or a log. A password that looks like any word is only found by the words before it ("my
// password is …"), and other personal data is not looked for.
//
// Rules come from five places, the surest first: gitleaks.json has the formats that gitleaks maintains (source and
// version are in the file, and tools/gitleaks makes it), formats.json those that it lacks, passwords.go named secrets,
// numbers.go numbers with a check digit, and random.go what only looks random. A new rule is a row in formats.json,
// passwords.go or numbers.go, with samples in rules_test.go of what it finds and of what it must not.
package secret

import (
	"cmp"
	_ "embed" // the rules
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// maxFindings bounds the findings of one rule.
const maxFindings = 100

// Finding is a place that looks like a secret.
type Finding struct {
	Pattern    string // the rule's name, one of [Scanner.Patterns]
	Start, End int    // byte offsets around the secret alone: in "password=x" around the x
}

// Scanner finds secrets. Make one with [New] and keep it; it is safe for concurrent use. The zero value finds
// nothing.
type Scanner struct {
	rules []rule
}

type rule struct {
	name     string
	keywords []string // in lower case; one must occur, if there are any
	digits   int      // what a text must have at least
	// re is compiled on first use: most rules never meet a text with their keywords. Its first group that took part is
	// the secret, or the whole match.
	re func() *regexp.Regexp
	// atKeyword says that every match begins with a keyword. Trying only those places makes a long fact a hundred times
	// as cheap.
	atKeyword bool
	entropy   float64                    // bits for each byte, which the secret must exceed
	check     func(v value) bool         // decides about a match; nil accepts it
	spans     func(text string) [][2]int // finds secrets without an expression
}

var (
	//go:embed formats.json
	formats []byte
	//go:embed gitleaks.json
	gitleaks []byte
)

// gitleaksEnd is how rules of gitleaks end. In prose any sign can follow a token.
const (
	gitleaksEnd = `(?:[\x60'"\s;]|\\[nr]|$)`
	proseEnd    = `(?:[^\w-]|$)`
)

// New returns a scanner with all rules. It compiles none of them.
func New() *Scanner {
	return &Scanner{slices.Concat(load(formats), load(gitleaks), passwords(), said(), numbers(), []rule{{name: "random-token", spans: randomTokens}})}
}

// Formats returns a scanner with the rules for tokens and keys of a known format alone. What it finds in a program's
// source is hardly ever something else.
func Formats() *Scanner { return &Scanner{slices.Concat(load(formats), load(gitleaks))} }

func load(data []byte) (rules []rule) {
	var file struct {
		Rules []struct {
			ID       string   `json:"id"`
			Regex    string   `json:"regex"`
			Keywords []string `json:"keywords"`
			Entropy  float64  `json:"entropy"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		panic(err) // the files are part of the program
	}
	for _, r := range file.Rules {
		re := lazyregexp.New(strings.Replace(r.Regex, gitleaksEnd, proseEnd, 1))
		rules = append(rules, rule{name: r.ID, keywords: r.Keywords, re: re, entropy: r.Entropy})
	}
	return rules
}

// Find returns the places of a text that look like secrets, in order and without overlaps. Its work is linear in the
// text's length. Each rule reports at most 100 places.
func (s *Scanner) Find(text string) []Finding {
	lower := strings.ToLower(text)
	_, _, digits := kinds(text)
	occurs := pairsOf(lower)
	var all []Finding
	for _, r := range s.rules {
		if digits < r.digits || len(r.keywords) > 0 && !slices.ContainsFunc(r.keywords, func(k string) bool { return occurs.all(k) && strings.Contains(lower, k) }) {
			continue
		}
		for _, f := range r.find(text) {
			if !slices.ContainsFunc(all, func(o Finding) bool { return f.Start < o.End && o.Start < f.End }) {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// pairs are the pairs of bytes that occur in a text: they rule most keywords out before the text is searched for them.
type pairs [1 << 10]uint64

func pairsOf(text string) *pairs {
	var p pairs
	for i := range len(text) - 1 {
		at := uint16(text[i])<<8 | uint16(text[i+1])
		p[at>>6] |= 1 << (at & 63)
	}
	return &p
}

// all reports whether all pairs of a keyword occur.
func (p *pairs) all(keyword string) bool {
	for i := range len(keyword) - 1 {
		if at := uint16(keyword[i])<<8 | uint16(keyword[i+1]); p[at>>6]&(1<<(at&63)) == 0 {
			return false
		}
	}
	return true
}

func (r *rule) find(text string) []Finding {
	var all []Finding
	if r.spans != nil {
		for _, s := range r.spans(text) {
			all = append(all, Finding{r.name, s[0], s[1]})
		}
		return all
	}
	for _, m := range r.matches(text) {
		if len(all) == maxFindings {
			break
		}
		v := newValue(text, m)
		if v.from < v.to && (r.entropy == 0 || entropy(v.raw) > r.entropy) && (r.check == nil || r.check(v)) {
			all = append(all, Finding{r.name, v.from + v.quote, v.to - v.quote})
		}
	}
	return all
}

// reach is how far after its keyword a secret is looked for, in bytes.
const reach = 600

func (r *rule) matches(text string) [][]int {
	if !r.atKeyword {
		return r.re().FindAllStringSubmatchIndex(text, -1)
	}
	var all [][]int
	end := 0
	for at := range text {
		if at < end || !slices.ContainsFunc(r.keywords, func(k string) bool { return hasPrefixFold(text[at:], k) }) {
			continue
		}
		if m := r.re().FindStringSubmatchIndex(text[at:min(len(text), at+reach)]); m != nil {
			for i := range m {
				if m[i] >= 0 {
					m[i] += at
				}
			}
			all, end = append(all, m), m[1]
		}
	}
	return all
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

type value struct {
	text     string
	from, to int
	// raw is the match, and trimmed the same without quotes and without the signs that prose and programs put after it.
	raw, trimmed string
	quote        int // length of the quote on each side of raw: 0 or 1
	start        int // where the match begins, with the name before the value
}

// newValue takes the first group that took part in a match, or all of it.
func newValue(text string, m []int) value {
	from, to := m[0], m[1]
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 {
			from, to = m[i], m[i+1]
			break
		}
	}
	v := value{text: text, from: from, to: to, raw: text[from:to], start: m[0]}
	if n := len(v.raw) - 1; n > 0 && strings.IndexByte("\"'`", v.raw[0]) >= 0 && v.raw[0] == v.raw[n] {
		v.quote, v.trimmed = 1, v.raw[1:n]
	} else {
		v.trimmed = strings.TrimRight(v.raw, ".,;:!?)]}")
	}
	return v
}

// entropy is Shannon's, in bits for each byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
