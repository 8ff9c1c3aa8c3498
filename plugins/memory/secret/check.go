package secret

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// whole reports whether a match is no part of a longer word.
func whole(text string, from, to int) bool {
	return (from == 0 || !wordByte(text[from-1])) && (to == len(text) || !wordByte(text[to]))
}

// wordByte reports whether a byte is part of a word of a program.
func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// isJWT reports whether the first part of a signed token is the header of one.
func isJWT(text string, from, to int) bool {
	head, _, _ := strings.Cut(text[from:to], ".")
	if !whole(text, from, to) {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return false
	}
	var header struct {
		Alg string `json:"alg"`
	}
	return json.Unmarshal(data, &header) == nil && header.Alg != ""
}

// privateKeys finds private keys as text, from the line that begins one to the line
// that ends it or to the end of the text.
func privateKeys(name, text string) []Finding {
	const begin, putty, mark = "-----BEGIN ", "PuTTY-User-Key-File-", "-----END "
	var all []Finding
	done := 0
	for _, at := range occurrences(text, []string{begin, putty}) {
		if at < done || len(all) == maxFindings || strings.HasPrefix(text[at:], begin) && !titledPrivate(text[at+len(begin):]) {
			continue
		}
		done = len(text)
		if i := strings.Index(text[at:], mark); i >= 0 {
			done = at + i + len(mark)
			done += len(firstLine(text[done:]))
		}
		all = append(all, Finding{name, at, done})
	}
	return all
}

// titledPrivate reports whether the title of a block, which begins here, is that of a
// private key.
func titledPrivate(text string) bool {
	title, _, _ := strings.Cut(text[:min(len(text), 64)], "-----")
	return strings.HasSuffix(strings.TrimSuffix(title, " BLOCK"), "PRIVATE KEY")
}

// placeholders are parts of values that stand for one.
func placeholders() []string {
	return []string{
		"example", "placeholder", "changeme", "change_me", "change-me", "your_", "your-", "yourpass", "redacted", "dummy", "xxxx", "****", "••••",
		"...", "…", "<", ">", "${", "{{", "$(", "%s", "%v", "getenv", "process.env", "os.environ", "env.", "secretref", "vault:",
	}
}

// notPlaceholder reports whether a value is more than the place of one.
func notPlaceholder(text string, from, to int) bool {
	v := lowerASCII(unquote(text[from:to]))
	if strings.HasPrefix(v, "$") || strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[") {
		return false
	}
	if strings.Trim(v, v[:min(1, len(v))]) == "" { // one sign, again and again
		return false
	}
	return !slices.ContainsFunc(placeholders(), func(s string) bool { return strings.Contains(v, s) })
}

// unquote takes a pair of quotes off.
func unquote(v string) string {
	if len(v) > 1 && strings.IndexByte("\"'`", v[0]) >= 0 && v[0] == v[len(v)-1] {
		return v[1 : len(v)-1]
	}
	return v
}

// notOrdinary reports whether a value is neither the place of one nor a common word.
func notOrdinary(text string, from, to int) bool {
	return to-from >= minValue && to-from <= maxValue && notPlaceholder(text, from, to) && !ordinary(text[from:to])
}

// Bounds of a value, in bytes, and the least length of one whose name is not that of
// a password.
const (
	minValue = 4
	maxValue = 256
	minOther = 8
)

// trimmed trims what prose and programs put around a value.
func trimmed(raw string) string {
	if v := unquote(raw); v != raw {
		return v
	}
	return strings.TrimRight(raw, ".,;:!?)]}")
}

// looksChosen reports whether a value is none of the language's words: it has a digit
// or a sign inside.
func looksChosen(text string, from, to int) bool {
	v := trimmed(text[from:to])
	if len(v) < minValue || len(v) > maxValue || !notPlaceholder(text, from, to) {
		return false
	}
	return strings.IndexFunc(v, func(r rune) bool {
		return unicode.IsDigit(r) || !unicode.IsLetter(r) && !strings.ContainsRune("-'’/_.,:", r)
	}) >= 0
}

// mixed reports whether a value has small and capital letters and digits.
func mixed(text string, from, to int) bool {
	v := text[from:to]
	return strings.ContainsAny(v, "0123456789") && strings.IndexFunc(v, unicode.IsUpper) >= 0 && strings.IndexFunc(v, unicode.IsLower) >= 0
}

// ofPassword reports whether what is named before a value is a password, which people
// choose. Others, such as tokens, are made by machines.
func ofPassword(text string, from int) bool {
	const reach = 80
	before := strings.ToLower(text[max(0, from-reach):from])
	for _, name := range []string{"passw", "passphrase", "passcode", "pwd", "kennwort", "mot de passe", "mdp", "contrase", "senha", "wachtwoord", "hasło", "пароль"} {
		if strings.Contains(before, name) {
			return true
		}
	}
	return false
}

// plausible reports whether a value can be what it is named: anything with a digit or
// a sign in it for a password, and what is longer and no number for others.
func plausible(text string, from, to int) bool {
	v := trimmed(text[from:to])
	if !looksChosen(text, from, to) {
		return false
	}
	return ofPassword(text, from) || len(v) >= minOther && strings.Trim(v, "0123456789.,:-/ ") != ""
}

// flagged reports whether what follows a flag of a command is a value.
func flagged(text string, from, to int) bool {
	v := trimmed(text[from:to])
	return notOrdinary(text, from, to) && !strings.HasPrefix(v, "-") && !code(v)
}

// assigned reports whether what is assigned to a name is a value, and no word of a
// program or of prose.
func assigned(text string, from, to int) bool {
	raw := text[from:to]
	v := trimmed(raw)
	switch quoted := unquote(raw) != raw; {
	case len(v) < minValue, len(v) > maxValue, !notPlaceholder(text, from, to), code(v), ordinary(v):
		return false
	case quoted:
		return !strings.ContainsAny(v, " \t") && (ofPassword(text, from) || plausible(text, from, to))
	case plausible(text, from, to):
		return true
	}
	return ofPassword(text, from) && len(v) >= 6 && isWord(v) && !camel(v) && endsLine(text, to)
}

// camel reports whether a word has capitals inside, as names in programs have.
func camel(v string) bool {
	return v != strings.ToUpper(v) && strings.IndexFunc(v[1:], unicode.IsUpper) >= 0
}

// code reports whether a value is a call, a field, a variable or a path, and not
// written by itself.
func code(v string) bool {
	if strings.ContainsAny(v, "()") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "&") || strings.HasPrefix(v, "*") {
		return true
	}
	if strings.Contains(v, "://") {
		return true // url_password looks at these
	}
	head, rest, dotted := strings.Cut(v, ".")
	return dotted && isWord(head) && isWord(strings.NewReplacer(".", "", "_", "").Replace(rest))
}

// isWord reports whether a text is letters alone.
func isWord(v string) bool {
	return v != "" && strings.IndexFunc(v, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// endsLine reports whether the text or its line ends here.
func endsLine(text string, at int) bool {
	rest := strings.TrimLeft(text[at:], " .!")
	return rest == "" || rest[0] == '\n' || rest[0] == '\r'
}

// told reports whether what a sentence says of a password is the password. Words that
// people say of passwords are none, nor is what goes on.
func told(text string, from, to int) bool {
	raw := text[from:to]
	v := trimmed(raw)
	switch {
	case len(v) < minValue, len(v) > maxValue, !notPlaceholder(text, from, to), ordinary(v), code(v):
		return false
	case plausible(text, from, to):
		return true
	case !ofPassword(text, from):
		return false
	}
	end := to
	if unquote(raw) == raw {
		end = from + len(v)
	}
	return isWord(v) && (end == to && raw != v || endsClause(text, end))
}

// endsClause reports whether the sentence or a part of it ends here.
func endsClause(text string, at int) bool {
	rest := strings.TrimLeft(text[at:], " ")
	return rest == "" || strings.IndexByte(".,;!)\n\r", rest[0]) >= 0
}

// firstLine returns a text up to its first line break.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
