package secret

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// cardPattern matches numbers in the groups and with the first digits of the issuers of payment cards.
const cardPattern = `(?:4\d{3}|5[0-8]\d\d|2[2-7]\d\d|35\d\d|6\d{3})(?:[ .-]?\d{4}){3}(?:[ -]?\d{3})?|3[47]\d\d[ -]?\d{6}[ -]?\d{5}|3[0689]\d\d[ -]?\d{6}[ -]?\d{4}|4\d{12}`

// numbers are those of cards, accounts and persons, which have a check digit or a form of their own.
func numbers() []rule {
	id := func(keywords []string, pattern string, check func(number string) bool) rule {
		re := lazyregexp.New(`(?:^|[^\w.,/+-])(` + pattern + `)(?:$|[^\w-])`)
		return rule{name: "national-id", keywords: keywords, digits: 6, re: re, check: func(v value) bool { return check(unspaced(v.raw)) }}
	}
	return []rule{
		{name: "credit-card", digits: 13, re: lazyregexp.New(cardPattern), check: isCard},
		{name: "iban", digits: 6, spans: ibans},
		// United States: social security number; only its form and what is never assigned are known.
		id(nil, `\d{3}-\d\d-\d{4}`, func(n string) bool {
			return n[:3] != "000" && n[:3] != "666" && n[0] != '9' && n[3:5] != "00" && n[5:] != "0000"
		}),
		// United Kingdom: national insurance number, which has no check digit.
		id(nil, `[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]`, func(string) bool { return true }),
		// Spain: DNI and NIE; the letter is the number modulo 23.
		id(nil, `(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z]`, func(n string) bool {
			number := remainder(strings.NewReplacer("X", "0", "Y", "1", "Z", "2").Replace(n[:len(n)-1]), 23)
			return number >= 0 && "TRWAGMYFPDXBNJZSQVHLCKE"[number] == n[len(n)-1]
		}),
		// France: NIR; the last two digits make the number divisible by 97.
		id(nil, `[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?\d[\dAB] ?\d{3} ?\d{3} ?\d\d`, func(n string) bool {
			number := remainder(strings.NewReplacer("2A", "19", "2B", "18").Replace(n[:13]), 97)
			key, err := strconv.Atoi(n[13:])
			return err == nil && number >= 0 && 97-number == key
		}),
		// Germany: tax number of a person, and pension insurance number.
		id([]string{"steuer", "identifikationsnummer", "idnr", "tax"}, `\d\d ?\d{3} ?\d{3} ?\d{3}`, isGermanTaxNumber),
		id(nil, `\d\d ?[0-3]\d[01]\d\d\d ?[A-Z] ?\d\d ?\d`, isGermanPensionNumber),
		// China: resident number; the date of birth is in it, and the last sign is modulo 11.
		id(nil, `[1-9]\d{16}[\dXx]`, func(n string) bool {
			_, err := time.Parse("20060102", n[6:14])
			sum := weighted(n[:17], 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
			return err == nil && "10X98765432"[sum%11] == strings.ToUpper(n)[17]
		}),
		// Japan: My Number.
		id([]string{"マイナンバー", "個人番号", "my number"}, `\d{4}[ -]?\d{4}[ -]?\d{4}`, func(n string) bool {
			check := 11 - weighted(n[:11], 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11
			return int(n[11]-'0') == check%11%10
		}),
	}
}

// unspaced returns a number without the spaces and hyphens between its groups.
func unspaced(number string) string { return strings.NewReplacer(" ", "", "-", "").Replace(number) }

// weighted is the sum of digits times their weights.
func weighted(digits string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		sum += int(digits[i]-'0') * w
	}
	return sum
}

// remainder is a decimal number of any length modulo m, or -1 if it is not a number.
func remainder(digits string, m int) int {
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return -1
		}
		n = (n*10 + int(c-'0')) % m
	}
	return n
}

// isGermanTaxNumber checks the last digit by ISO 7064, modulo 11, 10.
func isGermanTaxNumber(n string) bool {
	product := 10
	for _, c := range n[:10] {
		sum := (int(c-'0') + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return n[0] != '0' && (11-product)%10 == int(n[10]-'0')
}

// isGermanPensionNumber checks the last digit: the sum of the digits of products, with the letter as its number.
func isGermanPensionNumber(n string) bool {
	letter := n[8] - 'A' + 1
	sum := 0
	for i, w := range []int{2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1} {
		digits := n[:8] + string([]byte{'0' + letter/10, '0' + letter%10}) + n[9:11]
		product := int(digits[i]-'0') * w
		sum += product/10 + product%10
	}
	return sum%10 == int(n[11]-'0')
}

// isCard reports whether the check digit is right, and the number is not part of something longer.
func isCard(v value) bool {
	sum, double := 0, false
	for i := len(v.raw) - 1; i >= 0; i-- {
		n := int(v.raw[i]) - '0'
		if n < 0 {
			continue // a sign between groups
		}
		if double {
			n = n*2/10 + n*2%10
		}
		sum, double = sum+n, !double
	}
	joins := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.+/=@#$%", r)
	}
	before, _ := utf8.DecodeLastRuneInString(v.text[:v.from])
	after, size := utf8.DecodeRuneInString(strings.TrimPrefix(v.text[v.to:], ".")) // the point may end a sentence
	return sum%10 == 0 && !mixed(v.raw) && (v.from == 0 || !joins(before)) && (size == 0 || !joins(after))
}

// mixed reports whether the groups of a number are separated by different signs, or some are not.
func mixed(number string) bool {
	kinds := 0
	for _, sign := range " .-" {
		if n := strings.Count(number, string(sign)); n > 0 {
			kinds++
			if sign == '.' && n < 3 {
				return true
			}
		}
	}
	return kinds > 1
}

// ibanLengths are the lengths of account numbers by country, from the registry of SWIFT.
const ibanLengths = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 " +
	"GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB32 LC32 LI21 LT21 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 " +
	"PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"

var ibanStart = lazyregexp.New(`(?i)\b[a-z]{2}\d\d[ -]?[a-z0-9]{4}`)

// ibans finds international bank account numbers whose check digits are right.
func ibans(text string) [][2]int {
	var all [][2]int
	for _, m := range ibanStart().FindAllStringIndex(text, maxFindings) {
		number, end := account(text, m[0])
		if number != "" && isIBAN(number) {
			all = append(all, [2]int{m[0], end})
		}
	}
	return all
}

// account returns the letters and digits from a place on, as many as the country's account numbers have, in capitals, and where
// they end. A single space or hyphen may stand between two of them.
func account(text string, from int) (string, int) {
	country := strings.Index(ibanLengths, strings.ToUpper(text[from:from+2]))
	if country < 0 || country%5 != 0 {
		return "", 0
	}
	length, _ := strconv.Atoi(ibanLengths[country+2 : country+4])
	var number []byte
	at := from
	for ; at < len(text) && len(number) < length; at++ {
		switch c := text[at]; {
		case isLetter(c) || '0' <= c && c <= '9':
			number = append(number, c)
		case (c != ' ' && c != '-') || text[at-1] == c:
			return "", 0
		}
	}
	if len(number) < length || at < len(text) && (isLetter(text[at]) || '0' <= text[at] && text[at] <= '9') {
		return "", 0
	}
	return strings.ToUpper(string(number)), at
}

// isIBAN reports whether a number is 1 modulo 97, with its first four signs at the end and letters as numbers from 10.
func isIBAN(number string) bool {
	var digits strings.Builder
	for _, c := range number[4:] + number[:4] {
		if c >= 'A' {
			digits.WriteString(strconv.Itoa(int(c-'A') + 10))
		} else {
			digits.WriteRune(c)
		}
	}
	return remainder(digits.String(), 97) == 1
}
