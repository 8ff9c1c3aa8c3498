package secret

import (
	"math"
	"strings"
)

// Bounds of what may be a random token, in characters. Longer runs are files.
const (
	minToken = 20
	maxToken = 128
)

// Entropies, in bits for each character, from which a token is random: with a word
// before it that says what it is, and by itself.
const (
	hintedBits = 3.3
	alikeBits  = 4.2
)

// hintReach is how far before a token a hint may stand, in bytes.
const hintReach = 48

// randomTokens finds runs of letters and digits that no person and no common format
// writes: by itself only with small and capital letters and digits in it, after a
// word such as "key" also with less.
func randomTokens(name, text string) []Finding {
	var all []Finding
	public := publicBlocks(text)
	for i := 0; i < len(text) && len(all) < maxFindings; {
		if !tokenByte(text[i]) {
			i++
			continue
		}
		end := tokenEnd(text, i)
		from, to := trimToken(text, i, end)
		for len(public) > 0 && public[0].End <= from {
			public = public[1:]
		}
		if isRandom(text, from, to) && (len(public) == 0 || to <= public[0].Start) {
			all = append(all, Finding{name, from, to})
		}
		i = end
	}
	return all
}

// tokenByte reports whether a byte can be in a token.
func tokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '+' || c == '/' || c == '='
}

// tokenEnd returns where the bytes of a token end that begin at i.
func tokenEnd(text string, i int) int {
	for i < len(text) && tokenByte(text[i]) {
		i++
	}
	return i
}

// trimToken takes off what is around a token: the name and "=" before it, and signs.
func trimToken(text string, from, to int) (int, int) {
	for to > from && strings.IndexByte("-_+/", text[to-1]) >= 0 {
		to--
	}
	body := strings.TrimRight(text[from:to], "=")
	if i := strings.LastIndexByte(body, '='); i >= 0 {
		from += i + 1
	}
	for from < to && strings.IndexByte("-_+/=", text[from]) >= 0 {
		from++
	}
	return from, to
}

// isRandom reports whether a token looks like dice.
func isRandom(text string, from, to int) bool {
	v := text[from:to]
	if len(v) < minToken || len(v) > maxToken || known(text, from, v) || wrapped(text, from, to) {
		return false
	}
	n := kindsOf(v)
	if n.digits == 0 || n.signs > len(v)/6 || wordy(v) {
		return false
	}
	bothCases := n.small > 3 && n.capital > 3
	if hinted(text, from) {
		return (n.digits >= 3 || bothCases) && entropy(v) >= hintedBits
	}
	return len(v) >= 32 && bothCases && n.digits > 3 && entropy(v) >= alikeBits
}

// kinds is how many bytes of each kind a token has.
type kinds struct{ small, capital, digits, signs int }

// kindsOf counts the bytes of a token.
func kindsOf(v string) kinds {
	var n kinds
	for i := range len(v) {
		switch c := v[i]; {
		case 'a' <= c && c <= 'z':
			n.small++
		case 'A' <= c && c <= 'Z':
			n.capital++
		case digit(c):
			n.digits++
		default:
			n.signs++
		}
	}
	return n
}

// known reports whether a token is of a common format that is public: a hash, a UUID,
// a part of a URL or a path, a public key, a checksum, a picture.
func known(text string, from int, v string) bool {
	switch {
	case isHex(v) || isUUID(v):
		return true
	case strings.HasPrefix(v, "AAAA") && strings.Contains(v[:min(len(v), 16)], "3NzaC"):
		return true // OpenSSH
	case strings.HasPrefix(v, "sha1-"), strings.HasPrefix(v, "sha256-"), strings.HasPrefix(v, "sha384-"), strings.HasPrefix(v, "sha512-"):
		return true
	}
	before := text[max(0, from-512):from]
	if i := strings.LastIndexAny(before, " \t\n\"'`<>()"); i >= 0 {
		before = before[i+1:]
	}
	return strings.Contains(before, "://") || strings.Contains(before, "base64,") || strings.HasSuffix(before, "h1:") ||
		strings.HasSuffix(before, "SHA256:") || strings.HasSuffix(before, "sha256:") || strings.HasSuffix(before, "data:")
}

// wrapped reports whether a token is a line of a file in base64: it fills its line,
// and the one before or after is of the same kind.
func wrapped(text string, from, to int) bool {
	const least = 40
	if from > 0 && text[from-1] != '\n' || to < len(text) && text[to] != '\n' && text[to] != '\r' {
		return false
	}
	lines := func(line string) bool {
		line = strings.TrimRight(line, "\r")
		return len(line) >= least && tokenEnd(line, 0) == len(line)
	}
	before := strings.TrimSuffix(text[max(0, from-2*maxToken):from], "\n")
	after := strings.TrimLeft(text[to:min(len(text), to+2*maxToken)], "\r\n")
	line, _, _ := strings.Cut(after, "\n")
	return lines(before[strings.LastIndexByte(before, '\n')+1:]) || lines(line)
}

// isHex reports whether a token is hexadecimal digits, as hashes are. Keys of that
// look are found by what is before them.
func isHex(v string) bool {
	return strings.Trim(v, "0123456789abcdef") == "" || strings.Trim(v, "0123456789ABCDEF") == ""
}

// isUUID reports whether a token is a UUID, or begins with one and a sign.
func isUUID(v string) bool {
	const size = 36
	if len(v) < size || len(v) > size && v[size] != '-' && v[size] != '_' && v[size] != '/' {
		return false
	}
	for i := range size {
		switch i {
		case 8, 13, 18, 23:
			if v[i] != '-' {
				return false
			}
		default:
			if strings.IndexByte("0123456789abcdefABCDEF", v[i]) < 0 {
				return false
			}
		}
	}
	return true
}

// wordy reports whether a token is words put together: most of its letters stand in
// runs of four and more of one case, as in identifiers and file names.
func wordy(v string) bool {
	inRuns, letters, run := 0, 0, 0
	flush := func() {
		if run >= 4 {
			inRuns += run
		}
		run = 0
	}
	for i := range len(v) {
		c := v[i]
		isSmall := 'a' <= c && c <= 'z'
		isCapital := 'A' <= c && c <= 'Z'
		switch {
		case isSmall:
			run++
			letters++
		case isCapital:
			flush()
			run++
			letters++
		default:
			flush()
		}
	}
	flush()
	return letters > 0 && inRuns*2 > letters
}

// hinted reports whether a word just before a token says that it is a secret.
func hinted(text string, from int) bool {
	before := lowerASCII(text[max(0, from-hintReach):from])
	for _, hint := range []string{"key", "token", "secret", "credential", "passw", "bearer", "auth"} {
		if strings.Contains(before, hint) && !strings.Contains(before, "public key") {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits for each byte.
func entropy(v string) float64 {
	var count [256]int
	for i := range len(v) {
		count[v[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// publicBlocks returns the certificates and public keys of a text, whose lines look
// random.
func publicBlocks(text string) []Finding {
	var all []Finding
	for from := 0; ; {
		i := strings.Index(text[from:], "-----BEGIN ")
		if i < 0 {
			return all
		}
		start := from + i
		end := strings.Index(text[start:], "-----END ")
		if end < 0 {
			return append(all, Finding{"", start, len(text)})
		}
		from = start + end
		all = append(all, Finding{"", start, from})
	}
}
