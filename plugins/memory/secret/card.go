package secret

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the number of a card, in digits.
const (
	minCard = 13
	maxCard = 19
)

// cards finds numbers of payment cards. What stands before or after a number, such as
// a date, may be digits too, so each group of digits may begin one.
func cards(name, text string) []Finding {
	var all []Finding
	for i := 0; i < len(text) && len(all) < maxFindings; {
		if !digit(text[i]) {
			i++
			continue
		}
		end := groupEnd(text, i)
		if to := cardEnd(text, i); to > 0 {
			all = append(all, Finding{name, i, to})
			end = to
		}
		i = end
	}
	return all
}

// groupEnd returns where the digits end that begin at i.
func groupEnd(text string, i int) int {
	for i < len(text) && digit(text[i]) {
		i++
	}
	return i
}

// cardEnd returns where the longest card number ends that begins at from, or 0.
func cardEnd(text string, from int) int {
	var found int
	var digits []byte
	for i := from; ; i++ {
		end := groupEnd(text, i)
		if end == i || len(digits)+end-i > maxCard {
			return found
		}
		for _, c := range []byte(text[i:end]) {
			digits = append(digits, c-'0')
		}
		if len(digits) >= minCard && isCard(text, from, end, digits) {
			found = end
		}
		if end == len(text) || text[end] != ' ' && text[end] != '-' {
			return found
		}
		i = end // and over the sign between groups
	}
}

// digit reports whether a byte is one.
func digit(c byte) bool { return '0' <= c && c <= '9' }

// isCard reports whether digits are the number of a payment card: one of the issuers'
// first digits and lengths, a right check digit, and nothing around that makes it a
// part of something longer.
func isCard(text string, from, to int, digits []byte) bool {
	return issued(digits) && luhn(digits) && !adjoins(text, from, to) && evenGroups(text[from:to])
}

// issued reports whether there is an issuer for such numbers.
func issued(d []byte) bool {
	two := int(d[0])*10 + int(d[1])
	four := two*100 + int(d[2])*10 + int(d[3])
	switch n := len(d); {
	case d[0] == 4:
		return n == 13 || n == 16 || n == 19
	case two >= 51 && two <= 55, four >= 2221 && four <= 2720:
		return n == 16
	case two == 34, two == 37:
		return n == 15
	case two == 36, two == 38, two == 39, two == 30:
		return n == 14
	case two == 35, four == 6011, two == 64, two == 65, two == 62:
		return n >= 16
	}
	return false
}

// luhn checks the last digit.
func luhn(d []byte) bool {
	sum := 0
	for i, c := range d {
		n := int(c)
		if (len(d)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// adjoins reports whether a letter, a digit or a sign that joins is directly before or
// after.
func adjoins(text string, from, to int) bool {
	joins := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.+/=@#$%", r)
	}
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, size := utf8.DecodeRuneInString(text[to:])
	if after == '.' { // the end of a sentence, or a fraction
		next, _ := utf8.DecodeRuneInString(text[to+size:])
		return joins(next) || from > 0 && joins(before)
	}
	return from > 0 && joins(before) || to < len(text) && joins(after)
}

// evenGroups reports whether digits are written together, or in groups of at least
// four but for the last, as on a card. Lists of small numbers are not.
func evenGroups(text string) bool {
	groups := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	for i, g := range groups {
		if len(g) < 4 && i < len(groups)-1 {
			return false
		}
	}
	return !strings.Contains(text, " ") || !strings.Contains(text, "-")
}
