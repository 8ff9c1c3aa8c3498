package secret

import (
	_ "embed" // ordinary words
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Bounds of a password, in bytes, and the least length of other named secrets.
const (
	minValue = 4
	maxValue = 256
	minOther = 8
)

// Names of secrets before their values.
const (
	names = `(?:pass(?:word|wd|phrase|code)?|pwd?|secret(?:[ _-]?key)?|` +
		`(?:api|access|auth|private|signing|encryption|service|account|license|deploy|master|shared)[ _-]?key|token|credentials?|connection[ _-]?string|` +
		`passwort|kennwort|mot de passe|mdp|contraseña|contrasena|clave|senha|wachtwoord|hasło|пароль)`
	eastern = `密码|密碼|口令|密钥|密鑰|パスワード|パスコード|暗証番号|apiキー|비밀번호`
	// quotedOr is a value: in quotes, or up to a space.
	quotedOr = `("[^"\n]+"|'[^'\n]+'|` + "`[^`\n]+`" + `|[^\s"'` + "`" + `]+)`
)

// passwords are named secrets: in URLs, headers, flags, assignments and sentences.
func passwords() []rule {
	named := []string{
		"pass", "pw", "secret", "api", "access", "auth", "private", "signing", "encryption", "service", "account", "license", "deploy", "master", "shared",
		"token", "credential", "connection", "kennwort", "mot de passe", "mdp", "contrase", "clave", "senha", "wachtwoord", "hasło", "пароль",
	}
	return []rule{
		{
			name: "password-in-url", keywords: []string{"://"}, check: func(v value) bool { return v.plain() && !ordinary(v.raw) },
			re: lazyregexp.New(`\b[A-Za-z][A-Za-z0-9+.-]{0,32}://[^\s:/@"'<>]*:([^\s/@"'<>]+)@[A-Za-z0-9\[]`),
		},
		{
			name: "authorization-header", keywords: []string{"authorization", "bearer"}, check: value.chosen,
			re: lazyregexp.New(`(?i)\b(?:authorization["']?\s?[:=]\s?["']?(?:bearer|basic|token|apikey)\s|bearer\s)["']?([A-Za-z0-9._~+/=-]{12,})`),
		},
		{
			name: "password-flag", keywords: []string{"-pass", "-pwd", "-token", "-secret", "-api", "-auth", "-access", "-u ", "--user"}, check: value.flagged,
			re: lazyregexp.New(`(?i)(?:^|\s)(?:--?(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|auth-?token|access-?key)(?:=| )|(?:-u|--user)(?: |=)["']?[^\s:"']+:)` + quotedOr),
		},
		{
			name: "password-assigned", keywords: named, atKeyword: true, check: value.assigned,
			re: lazyregexp.New(`(?i)^` + names + `(?:[_-][a-z0-9]+)*(?:["'` + "`" + `\])]| \([^)\n]{0,32}\))?[ \t]*(?:=>|:=|==?|:)[ \t]*` + quotedOr),
		},
		{
			name: "password-said", keywords: strings.Split(eastern, "|"), check: value.eastern,
			re: lazyregexp.New(`(?i)(?:` + eastern + `)[^!-~。！？\n]{0,20}?(?:是|为|為|就是|改成了?|设成了?|は|が|を|:|：|=|는|은|이)[^!-~０-９。！？\n]{0,12}[ 「“"『]?([!-~０-９Ａ-Ｚａ-ｚ]{4,})`),
		},
		{
			name: "password-said", keywords: strings.Split(eastern, "|"), check: func(v value) bool { return v.eastern() && v.chosen() && v.flagged() },
			re: lazyregexp.New(`(?i)(?:` + eastern + `)[ \t\x{3000}]*[「“"『]?([!-~]{4,})`),
		},
		{
			name: "password-said", keywords: strings.Split(eastern, "|"), check: value.plain,
			re: lazyregexp.New(`([!-~]{4,})[」”"]?(?:就?是|為|为|が|は)[\pL ]{0,12}?(?:` + eastern + `)`),
		},
		{
			name: "recovery-phrase", keywords: []string{"seed", "recovery", "mnemonic", "backup"},
			re: lazyregexp.New(`(?i)\b(?:seed|recovery|mnemonic|backup)[ -]?(?:phrase|words?|seed)?[^\n:=]{0,24}(?:is|are|:|=)\s{0,4}((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b`),
		},
	}
}

// beginsName reports whether the name before the value begins here: "dbPassword" and "DB_PASSWORD" have one, "bypass"
// has not.
func (v value) beginsName() bool {
	if v.start == 0 {
		return true
	}
	before, c := v.text[v.start-1], v.text[v.start]
	return !isLetter(before) || isSmall(before) && !isSmall(c)
}

func isSmall(c byte) bool { return 'a' <= c && c <= 'z' }

func isLetter(c byte) bool { return isSmall(c | 0x20) }

// eastern reports whether a Chinese, Japanese or Korean sentence gives a value and does not count or manage passwords.
func (v value) eastern() bool {
	next, _ := utf8.DecodeRuneInString(v.text[v.to:])
	return v.plain() && !strings.ContainsRune("年月日位个個文字桁回", next) && !easternTalk().MatchString(v.text[v.start:v.from])
}

var easternTalk = lazyregexp.New(`管理|マネージャ|策略|ポリシー|长度|長さ|忘`)

// plain reports whether the value has a valid length and is not a placeholder.
func (v value) plain() bool {
	return len(v.trimmed) >= minValue && len(v.trimmed) <= maxValue && !placeholder(v.trimmed)
}

// chosen reports whether a plain value has a digit or a sign inside, as no word has.
func (v value) chosen() bool {
	return v.plain() && strings.IndexFunc(v.trimmed, func(r rune) bool {
		return unicode.IsDigit(r) || !unicode.IsLetter(r) && !strings.ContainsRune("-'’/_.,:", r)
	}) >= 0
}

// mixed reports whether a plain value has a letter and a digit.
func (v value) mixed() bool {
	return v.plain() && strings.ContainsFunc(v.trimmed, unicode.IsLetter) && strings.ContainsFunc(v.trimmed, unicode.IsDigit)
}

// forPassword reports whether the name before the value is a password's, which people choose; machines make tokens.
func (v value) forPassword() bool { return passwordName().MatchString(v.text[v.start:v.from]) }

var passwordName = lazyregexp.New(`(?i)passw|passphrase|passcode|pwd?|kennwort|mot de passe|mdp|contrase|senha|wachtwoord|hasło|пароль`)

// plausible reports whether the value fits its name: a password is chosen, others are longer and not a number.
func (v value) plausible() bool {
	return v.chosen() && (v.forPassword() || len(v.trimmed) >= minOther && strings.Trim(v.trimmed, "0123456789.,:-/ ") != "")
}

func (v value) flagged() bool {
	return v.plain() && !ordinary(v.trimmed) && !strings.HasPrefix(v.trimmed, "-") && !code(v.trimmed)
}

// assigned reports whether what is assigned is a value, and not a word of a program or of prose.
func (v value) assigned() bool {
	if !v.beginsName() || !v.flagged() {
		return false
	}
	if v.quote > 0 {
		return !strings.ContainsAny(v.trimmed, " \t") && (v.forPassword() || v.plausible())
	}
	camel := v.trimmed != strings.ToUpper(v.trimmed) && strings.IndexFunc(v.trimmed[1:], unicode.IsUpper) >= 0
	return v.plausible() || v.forPassword() && len(v.trimmed) >= 6 && isWord(v.trimmed) && !camel && v.ends("\n\r", " .!")
}

// ends reports whether the value is followed, after skipped signs, by one of the signs or the end of the text.
func (v value) ends(signs, skipped string) bool {
	rest := strings.TrimLeft(v.text[v.from+len(v.trimmed):], skipped)
	return rest == "" || strings.IndexByte(signs, rest[0]) >= 0
}

func placeholder(s string) bool {
	s = strings.ToLower(s)
	return s == "" || strings.ContainsAny(s[:1], "${[") || strings.Trim(s, s[:1]) == "" || slices.ContainsFunc(
		[]string{
			"example", "placeholder", "changeme", "change_me", "change-me", "your_", "your-", "yourpass", "redacted", "dummy", "xxxx", "****", "••••",
			"...", "…", "<", ">", "${", "{{", "$(", "%s", "%v", "getenv", "process.env", "os.environ", "env.", "secretref", "vault:",
		},
		func(part string) bool { return strings.Contains(s, part) },
	)
}

// codePattern matches calls, paths, references, URLs, and fields such as "form.password".
var codePattern = lazyregexp.New(`[()]|^\.?/|^[&*]|://|^\pL+\.[\pL._]*\pL[\pL._]*$`)

func code(s string) bool { return codePattern().MatchString(s) }

func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
}

// ordinary reports whether a word stands after "password is" or "password:" in texts that give no password away.
func ordinary(word string) bool {
	return slices.Contains(strings.Fields(ordinaryWords), strings.ToLower(strings.TrimRight(word, ".,;:!?")))
}

// ordinaryWords are states, types and grammar.
//
//go:embed ordinary.txt
var ordinaryWords string
