package secret

import "strings"

// ordinary reports whether a word is one that stands after "password is" or
// "password:" in texts that tell no password.
func ordinary(word string) bool {
	word = strings.ToLower(strings.TrimRight(word, ".,;:!?"))
	for w := range strings.FieldsSeq(ordinaryWords) {
		if w == word {
			return true
		}
	}
	return false
}

// ordinaryWords are states, types and grammar.
const ordinaryWords = `
a an the not no yes none null nil true false undefined empty blank missing absent unknown
string str text bytes byte int integer number bool boolean object any array list map uuid varchar char
required optional needed necessary mandatory allowed forbidden disabled enabled supported deprecated
wrong right correct incorrect invalid valid bad good fine okay weak strong short long simple complex unique
expired expiring old new changed reset revoked rotated lost stolen leaked compromised exposed forgotten
stored saved kept hashed salted encrypted hidden masked visible shown sent given passed read written logged cached checked
used reused shared public private secret secrets secure insecure safe unsafe sensitive confidential plain plaintext clear
here there now then always never only also still again in on at by for from of to with without as same different
set unset generated random created managed provided configured defined declared assigned what that this it my your our their its
pass password passwords passwd pwd user username token tokens key keys value values name field fields input output parameter argument header
hash bcrypt argon sha basic bearer oauth vault env environment variable file files config configuration database
falsch richtig ungültig abgelaufen geändert nicht sicher unsicher erforderlich vergessen zu kurz lang leer bekannt
incorrect invalide expiré oublié requis obligatoire trop court faible vide
incorrecta inválida caducada olvidada obligatoria requerida demasiado corta débil vacía
`
