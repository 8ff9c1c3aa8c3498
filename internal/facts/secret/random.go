package secret

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Bounds of a random token, in bytes (a longer one is a file), and the entropies from which a token is random: after
// a word that hints at it, and alone.
const (
	minToken   = 20
	maxToken   = 128
	hintedBits = 3.3
	aloneBits  = 4.2
)

var (
	tokenPattern = lazyregexp.New(`[\w+/=-]+`)
	hintPattern  = lazyregexp.New(`(?i)key|token|secret|credential|passw|bearer|auth`)
	// publicToken are hashes, UUIDs, SSH keys and checksums; publicPlace is what directly precedes parts of URLs,
	// pictures and checksums.
	publicToken = lazyregexp.New(`^(?:[0-9a-f]+|[0-9A-F]+|(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[-_/].*)?|AAAA.{0,8}3NzaC.*|sha(?:1|256|384|512)-.*)$`)
	publicPlace = lazyregexp.New("(?:://|base64,)[^\\s\"'`<>()]*$|(?:h1|(?i:sha256)|data):$")
	// pemBlock is a certificate or a public key, whose lines look random.
	pemBlock    = lazyregexp.New(`(?s)-----BEGIN .*?(?:-----END |\z)`)
	wordInToken = lazyregexp.New(`[A-Z][a-z]{3,}|[a-z]{4,}`)
)

// randomTokens finds runs of letters and digits that no person and no common format writes: alone only with small and
// capital letters and digits, after a word such as "key" also with less.
func randomTokens(text string) [][2]int {
	var all [][2]int
	blocks := pemBlock().FindAllStringIndex(text, -1)
	for _, m := range tokenPattern().FindAllStringIndex(text, -1) {
		for len(blocks) > 0 && blocks[0][1] <= m[0] {
			blocks = blocks[1:]
		}
		inBlock := len(blocks) > 0 && blocks[0][0] < m[1]
		from, to := trimToken(text, m[0], m[1])
		if !inBlock && len(all) < maxFindings && isRandom(text, from, to) {
			all = append(all, [2]int{from, to})
		}
	}
	return all
}

// trimToken takes off what is around a token: the name and "=" before it, and signs.
func trimToken(text string, from, to int) (int, int) {
	to = from + len(strings.TrimRight(text[from:to], "-_+/"))
	from += strings.LastIndexByte(strings.TrimRight(text[from:to], "="), '=') + 1
	return to - len(strings.TrimLeft(text[from:to], "-_+/=")), to
}

func isRandom(text string, from, to int) bool {
	token := text[from:to]
	before := text[max(0, from-512):from]
	if len(token) < minToken || len(token) > maxToken || publicToken().MatchString(token) || publicPlace().MatchString(before) || inFile(text, from, to) {
		return false
	}
	small, capital, digits := kinds(token)
	inWords := 0
	for _, word := range wordInToken().FindAllString(token, -1) {
		inWords += len(word)
	}
	signs := len(token) - small - capital - digits
	if digits == 0 || signs > len(token)/6 || 2*inWords > small+capital {
		return false
	}
	bothCases := small > 3 && capital > 3
	before = before[max(0, len(before)-48):]
	if hintPattern().MatchString(before) && !strings.Contains(strings.ToLower(before), "public key") {
		return (digits >= 3 || bothCases) && entropy(token) >= hintedBits
	}
	return len(token) >= 32 && bothCases && digits > 3 && entropy(token) >= aloneBits
}

func kinds(token string) (small, capital, digits int) {
	for i := range len(token) {
		switch c := token[i]; {
		case isSmall(c):
			small++
		case isLetter(c):
			capital++
		case '0' <= c && c <= '9':
			digits++
		}
	}
	return small, capital, digits
}

// inFile reports whether a token is a line of a file in base64: it fills its line, and the line before or after is of
// the same kind.
func inFile(text string, from, to int) bool {
	if from > 0 && text[from-1] != '\n' || to < len(text) && text[to] != '\n' && text[to] != '\r' {
		return false
	}
	isLine := func(line string) bool {
		line = strings.TrimRight(line, "\r")
		m := tokenPattern().FindStringIndex(line)
		return len(line) >= 40 && m != nil && m[1]-m[0] == len(line)
	}
	before := strings.TrimSuffix(text[max(0, from-2*maxToken):from], "\n")
	after, _, _ := strings.Cut(strings.TrimLeft(text[to:min(len(text), to+2*maxToken)], "\r\n"), "\n")
	return isLine(before[strings.LastIndexByte(before, '\n')+1:]) || isLine(after)
}
