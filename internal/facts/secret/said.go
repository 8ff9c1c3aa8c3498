package secret

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// naming finds secrets that a sentence names: "the PIN of my card is 4471", "4471 is my PIN". Words may stand between
// the noun and the verb. It reads English, German, French and Spanish.
type naming struct {
	nouns func() *regexp.Regexp
	// values is the expression of a value, and fits decides about one.
	values string
	fits   func(m mention) bool

	after, before, last, direct, changed func() *regexp.Regexp
}

// Pieces of sentences.
//
//nolint:gosec,misspell // names of secrets, in several languages
const (
	passwordNouns = `pass(?:word|wd|phrase|code|key)s?|pw[ds]?|pswd?|\pL*passwort|\pL*kennwort|mots? de passe|mdp|phrase (?:secrète|de passe)|code (?:wi-?fi|wlan)|contraseñas?|contrasena|frase (?:secreta|de contraseña)|clave`
	keyNouns      = `(?:api|access|auth|private|signing|encryption|service|account|license|deploy|master|shared|secret|wi-?fi|wpa2?)[ _-]?key|key (?:to|for) (?:the |our |my )?api|token|(?:client[ _-])?secret|credentials?|connection[ _-]?string|jeton|` +
		`(?:api|wlan|wi-?fi|zugriffs|lizenz)-?schlüssel|schlüssel für die api|clé (?:secrète|privée|wi-?fi|d['’]accès|(?:d['’])?api)|clave (?:secreta|privada|(?:de )?api)`
	pinNouns    = `(?:karten|handy|konto|sim)?pin(?:[ -]?(?:code|number|nummer))?|puk|cvv2?|cvc2?|geheim(?:zahl|nummer)|code (?:pin|secret|confidentiel)|digicode|código secreto`
	numberNouns = `(?:tür|haustür|tor|alarm|zugangs|sicherheits|karten|handy|garagen|tresor|entsperr|keller|eingangs|safe|key)?code|combination|combo|(?:zahlen)?kombination|combinaison|combinación|código`

	isVerb  = `is|are|was|were|be|been|equals?|reads|remains|becomes?|ist|lautet|war|heißt|heisst|bleibt|sind|est|c['’]est|était|sera|reste|es|era|será|siendo|son`
	setTo   = `(?:changed|set|reset|updated|switched|changée?|mise?|cambiad[ao]|puest[ao]) (?:to|en|à|a)`
	adverbs = `(?: (?:now|still|currently|just|simply|always|jetzt|noch|immer|nun|aktuell|maintenant|toujours|actuellement|ahora|siempre|todavía|aún))*`
	owner   = `(?:my|our|your|his|her|their|the|a|mein\p{L}*|unser\p{L}*|der|die|das|mon|ma|notre|le|la|un|mi|nuestr[ao]|el|una)`
	using   = `(?:my|our|mein\p{L}*|unser\p{L}*|mon|notre|mi|nuestr[ao]|wi-?fi|wlan|login|uses?|using|with|enter|type|try|mit|avec|con)`
)

// Expressions about what stands around a noun.
var (
	// opener matches the first of the words that belong to the noun before them. Others form another noun: "password manager".
	opener = lazyregexp.New(`(?i)^(?:$|['’(]|(?:for|of|to|on|at|in|from|with|by|that|which|i|we|you|he|she|they|my|our|his|her|their|the|now|still|currently|today|here|used|has|have|had|will|should|must|` +
		`für|fürs|fuer|vom|von|zum|zur|zu|am|an|im|der|die|das|des|dem|den|mein\pL*|unser\pL*|sein\pL*|ihr\pL*|eine[srm]|beim|bei|auf|` +
		`du|de|d|des|pour|sur|au|aux|à|que|dont|le|la|l|qui|actuel|wi-?fi|wlan|api|admin\pL*|internet|root|maître|del|para|en|al|maestra|actual|sigue)(?:$|[^\pL]))`)
	aside = lazyregexp.New(`^(?:,|[,(–—-].*[,)–—-])$`)
	// places are what a code opens; without one, a code is something else.
	places = lazyregexp.New(`(?i)(?:^|[^\pL])(?:my|our|mein\pL*|unser\pL*|mon|notre|mi|nuestr[ao]|door|gates?|garage|alarm|safe|lock\pL*|vault|unlock|security|access|entry|entrance|card|house|building|shed|airbnb|apartment|flat|office|lobby|lock ?box|locker|keypad|bike|suitcase|sim|` +
		`porte|portail|alarme|coffre|carte|portable|valise|immeuble|cadenas|entrée|bâtiment|accès|maison|puerta|portal|alarma|tarjeta|móvil|caja fuerte|candado|maleta|casa|acceso|garaje|entrada|banco|wi-?fi|` +
		`\pL*tür|tor|alarm\pL*|\pL*tresor|\pL*karte|handy|\pL*koffer|\pL*schloss|zugang|eingang|haus|keller|büro|wohnung|konto)(?:$|[^\pL])|(?:tür|tor|alarm|zugangs|sicherheits|karten|handy|garagen|tresor|entsperr|keller|eingangs|safe)code`)
	harmless = lazyregexp.New(`(?i)(?:^|[^\pL])(?:error|errors|exit|status|response|return|http|country|area|zip|post|postal|dress|source|bar|qr|promo|discount|coupon|voucher|gift|colou?r|product|booking|order|tracking|sort|` +
		`reference|invite|erreur|barre|route|fuente|éxito|succès|erfolg)(?:$|[^\pL])`)
	// goesOn matches what follows a number that is not a quantity.
	goesOn = lazyregexp.New(`(?i)^(?:[\s"'’)\]]*(?:$|\n)|[.,;!?)]+(?:\s|$)|["'’)]|\s*[–—-]\s|\s(?:and|or|but|so|for|on|if|in|at|to|please|everywhere|(?:be)?nutz\pL+|verwend\pL+|nehm\pL+|bekommen|überall|an|partout|en|now|until|till|since|when|because|bis|seit|weil|jusqu|depuis|hasta|desde|und|oder|aber|für|bitte|et|ou|mais|pour|y|o|pero|para|not|does|doesn't|btw|ist|lautet|war|geändert|is|est|es|c['’]est|as|als|comme|como)(?:$|[^\pL]))`)
	// version matches a version, or the name of a technique with its number.
	version = lazyregexp.New(`(?i)^v?\d+(?:\.\d+)+$|^v\d+$|^(?:sha|wpa|md|aes|base|oauth|utf|rfc|iso|ipv|pbkdf|argon|win(?:dows)?|ios|android)-?\d+$`)
)

func newNaming(nouns, values string, fits func(m mention) bool) *naming {
	verb := `(?:^|[\s,)”"»])(?:` + isVerb + `|` + setTo + `)` + adverbs + `(?: set to| like| called)?:?\s+`
	return &naming{
		nouns: lazyregexp.New(`(?i)` + nouns), values: values, fits: fits,
		after:   lazyregexp.New(`(?i)(?:` + verb + `|^['’]s\s+|c['’]est\s+|\s?(?:=>?|:|→)\s*)` + values),
		last:    lazyregexp.New(`(?i)\s` + values + ` (?:ist|lautet|war|heißt)(?:$|[\s.,;!?])`),
		direct:  lazyregexp.New(`(?i)^\s` + values),
		before:  lazyregexp.New(`(?i)(?:^|[\s:,;(«])` + values + `,? (?:(?:is|was|ist|war|est|c['’]est|es|era)` + adverbs + ` ` + owner + `|(?:as|als|comme|como)(?: ` + owner + `)?)(?:[ -][\pL'’-]+){0,3}[ -]$`),
		changed: lazyregexp.New(`(?i)^.{0,24}?\s(?:to|auf|en|à|a|as|als|comme|como)\s+` + values),
	}
}

// How a value stands to its noun.
const (
	afterVerb, afterSign, unlinked, bare, beforeNoun = "verb", "sign", "unlinked", "bare", "before"
)

// reachSaid is how far from its noun a value is looked for, in bytes.
const reachSaid = 120

// spans finds the values of all nouns of a text.
func (n *naming) spans(text string) (all [][2]int) {
	for _, m := range n.nouns().FindAllStringIndex(text, maxFindings) {
		if !standsAlone(text, m) {
			continue
		}
		if v, ok := n.valueOf(text, m); ok {
			all = append(all, [2]int{v.from + v.quote, v.to - v.quote})
		}
	}
	return all
}

// standsAlone reports whether a noun is a word of its own. "dbPassword" has one, "bypass" has not.
func standsAlone(text string, m []int) bool {
	after, _ := utf8.DecodeRuneInString(text[m[1]:])
	before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
	begins := !unicode.IsLetter(before) || unicode.IsLower(before) && unicode.IsUpper(rune(text[m[0]]))
	return begins && !manager().MatchString(text[max(0, m[0]-24):m[0]]) && !unicode.IsLetter(after) && !unicode.IsDigit(after) && after != '-'
}

var manager = lazyregexp.New(`(?i)(?:gestionnaire|générateur|gestor|generador|administrador) (?:de|des|del) $`)

// valueOf finds the value of the noun at m in its clause.
func (n *naming) valueOf(text string, m []int) (value, bool) {
	before, rest := clause(text, m)
	try := func(in string, at int, re *regexp.Regexp, how string) (value, bool) {
		for _, hit := range re.FindAllStringSubmatchIndex(in, -1) {
			v := newValue(text, []int{m[0], m[1], at + hit[2], at + hit[3]})
			if how == afterVerb && strings.ContainsAny(in[hit[0]:hit[2]], "=:→") {
				how = afterSign
			}
			between := in[:hit[0]]
			if how == beforeNoun {
				between = ""
			}
			if (belongs(between) || ofAccount(text[m[0]:m[1]], between, v)) && n.fits(mention{v, how, before + text[m[0]:m[1]] + rest, lastWord(before) + text[m[0]:m[1]] + between}) {
				return v, true
			}
		}
		return value{}, false
	}
	start, end := m[0]-len(before), m[1]
	if v, ok := try(rest, end, n.after(), afterVerb); ok {
		return v, true
	}
	if v, ok := try(rest, end, n.last(), unlinked); ok {
		return v, true
	}
	how := bare
	if noun := text[m[0]:m[1]]; usingNoun().MatchString(before) || loginNoun().MatchString(before) || noun == "PIN" || numberNoun().MatchString(noun) {
		how = unlinked
	}
	if v, ok := try(rest, end, n.direct(), how); ok {
		return v, true
	}
	if changes().MatchString(before + rest) {
		if v, ok := try(rest, end, n.changed(), unlinked); ok {
			return v, true
		}
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(rest), " "); opener().MatchString(first) || strings.ContainsAny(rest[:1], ".,;:!?)") {
		return try(before, start, n.before(), beforeNoun)
	}
	return value{}, false
}

var (
	usingNoun = lazyregexp.New(`(?i)(?:^|[^\pL])` + using + `(?: [\pL'’-]+){0,2}[ -]$`)
	// loginNoun is the name of a user with its noun, before the noun of the password: "login is admin, password x".
	loginNoun  = lazyregexp.New(`(?i)(?:^|[^\pL])(?:(?:log-?in|user ?name|user|account|e-?mail|id|benutzer(?:name)?|konto|nutzername|utilisateur|identifiant|compte|usuario|cuenta)(?: (?:name )?(?:is|ist|lautet|est|es|as)|\s?[:=])?|(?:log ?in|sign in|logged in) (?:as|with)) ["'` + "`" + `]?[^\s,]+["'` + "`" + `]?(?:,| ?[/|&+]|,? (?:and|with|und|mit|et|avec|y|con))+(?: ` + owner + `)? $`)
	numberNoun = lazyregexp.New(`(?i)^(?:pin|code).(?:code|number|nummer|pin)$`)
	changes    = lazyregexp.New(`(?i)(?:^|[^\pL])(?:chang|set |reset|updat|switch|geändert|gesetzt|änder|mis |cambi|pus[eo] )`)
)

// mention is a value, how it stands to its noun, the clause, and in it the noun with the word before it and those up to
// the verb.
type mention struct {
	value

	how, clause, near string
}

// belongs reports whether the words between a noun and its verb belong to the noun.
func belongs(between string) bool {
	between = strings.TrimSpace(between)
	return opener().MatchString(between) || aside().MatchString(between)
}

// ofAccount reports whether the words between the noun of a password and the verb name an account, as in "mot de passe
// Netflix est …", and the value can be nothing but a password. In English only a name can stand there.
func ofAccount(noun, between string, v value) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimSpace(between))
	named := unicode.IsUpper(first) || foreignNoun().MatchString(noun)
	return named && v.mixed() && len(strings.Fields(between)) <= 4 && !strings.Contains(between, ",") && !otherNoun().MatchString(between)
}

var (
	foreignNoun = lazyregexp.New(`(?i)passwort|kennwort|passe|mdp|contrase`)
	otherNoun   = lazyregexp.New(`(?i)manager|policy|richtlinie|hash|safe|tresor|generator|field|feld|test|server|step|page|file|table|user|app$`)
)

func lastWord(text string) string {
	return text[strings.LastIndexByte(strings.TrimRight(text, " "), ' ')+1:]
}

// clause returns what stands before and after a noun in its clause, and near it.
func clause(text string, m []int) (before, rest string) {
	from, to := max(0, m[0]-reachSaid), min(len(text), m[1]+reachSaid)
	for from < m[0] && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	before, rest = text[from:m[0]], text[m[1]:to]
	if ends := clauseEnd().FindAllStringIndex(before, -1); ends != nil {
		before = before[ends[len(ends)-1][1]:]
	}
	if end := clauseEnd().FindStringIndex(rest); end != nil {
		rest = rest[:end[0]+1]
	}
	return before, rest
}

var clauseEnd = lazyregexp.New(`[.!?;]\s|\n`)

// password reports whether a value fits the noun of a password, which people choose.
func (m mention) password() bool {
	if !m.plain() || ordinary(m.trimmed) || code(m.trimmed) || version().MatchString(m.trimmed) {
		return false
	}
	switch {
	case m.how == bare:
		return m.mixed() && (m.quote > 0 || m.countsNothing()) && !otherNoun().MatchString(m.trimmed) && !strings.Contains(strings.ToLower(m.near), "clave")
	case m.quote > 0:
		return m.how != afterSign
	case m.chosen():
		return strings.IndexFunc(m.trimmed, unicode.IsLetter) >= 0 || m.how == afterVerb && m.countsNothing()
	}
	// "Clave" is the key to success too.
	atEnd := !strings.Contains(strings.ToLower(m.near), "clave") && m.how == afterVerb && (m.ends(".,;!)\n\r", " ") || please().MatchString(m.text[m.to:]))
	return (atEnd || m.how == beforeNoun) && isWord(m.trimmed) && !derived().MatchString(m.trimmed)
}

var please = lazyregexp.New(`(?i)^,? (?:please|thanks|thank you|btw|bitte|danke|merci|s'il|por favor)(?:$|[^\pL])`)

// countsNothing reports whether a number is not a quantity of the noun after it.
func (m mention) countsNothing() bool { return goesOn().MatchString(m.text[m.from+len(m.trimmed):]) }

// derived matches a participle or an adjective, which describes a password and is not one.
var derived = lazyregexp.New(`(?i)(?:ed|ing|able|ible|ful|less|ous|ly|bar|lich|ig|tes|tée?s?|ée?s?|id[oa]|ad[oa])$`)

// key reports whether a value fits the noun of a key, which machines make.
func (m mention) key() bool {
	return m.password() && m.chosen() && len(m.trimmed) >= minOther && strings.Trim(m.trimmed, "0123456789.,:-/ ") != ""
}

// pin reports whether a value fits the noun of a PIN: it counts nothing, and has four digits or, on a card, three.
func (m mention) pin() bool {
	_, _, digits := kinds(m.raw)
	return m.how != bare && digits != 1 && digits != 2 && (digits != 3 || threeDigits().MatchString(m.near) || len(m.raw) > 3) && m.countsNothing()
}

var threeDigits = lazyregexp.New(`(?i)cvv|cvc|security code|[ck]omb`)

// opens reports whether a code is for a door, a card or the like.
func (m mention) opens() bool {
	return m.pin() && places().MatchString(m.clause) && !harmless().MatchString(m.near)
}

// phrase reports whether several words are a passphrase, and not a sentence about it.
func (m mention) phrase() bool {
	common := 0
	for n, word := range strings.FieldsFunc(m.raw, func(r rune) bool { return r == ' ' || r == '-' }) {
		if utf8.RuneCountInString(word) < 3 || n == 0 && participle().MatchString(word) {
			return false
		}
		if ordinary(word) {
			common++
		}
	}
	return common < 2
}

var participle = lazyregexp.New(`(?i)(?:ed|ing|ée?s?|id[oa]|ad[oa])$|^(?:ge|ver|be)\pL+t$`)

const (
	pinValue    = `(?:(?:the|der|die|das|le|la|el)(?: (?:number|nummer|num[eé]ro))? )?((?:[A-Za-z]?\d{2,4}[A-Za-z]\d{0,2}\b|\d(?:[ -]?\d){2,7})[#*]?|(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)[ ,-]{0,2}){4,8})`
	phraseValue = `((?:[\pL\d]+[ -]){2,9}[\pL\d]+)[.!]?\s*$`
)

// said are the rules for sentences.
func said() []rule {
	spans := func(nouns, values string, fits func(m mention) bool) func(string) [][2]int {
		return newNaming(nouns, values, fits).spans
	}
	return []rule{
		{name: "password-said", keywords: []string{"phrase", "frase"}, spans: spans(`pass ?phrase|phrase (?:secrète|de passe)|frase (?:secreta|de contraseña)`, phraseValue, mention.phrase)},
		{name: "password-said", keywords: []string{"pass", "pw", "psw", "kennwort", "mdp", "code w", "phrase", "frase", "contrase", "clave"}, spans: spans(passwordNouns, quotedOr, mention.password)},
		{name: "password-said", keywords: []string{"key", "token", "secret", "credential", "connection", "jeton", "schlüssel", "clé", "clave"}, spans: spans(keyNouns, quotedOr, mention.key)},
		{name: "pin", digits: 2, keywords: []string{"pin", "puk", "cvv", "cvc", "geheim", "secret", "confidentiel", "digicode"}, spans: spans(pinNouns, pinValue, mention.pin)}, //nolint:misspell // French
		{name: "pin", keywords: []string{"pin "}, spans: spans(`pin`, pinValue, mention.pin)},
		{name: "pin", digits: 2, keywords: []string{"code", "comb", "kombination", "código"}, spans: spans(numberNouns, pinValue, mention.opens)},
	}
}
