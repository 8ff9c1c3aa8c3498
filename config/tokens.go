package config

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"github.com/grapnelhq/grapnel/internal/owned"
)

// Tokens is a gateway's file of tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// Token is one token of a gateway's client, as a hash.
type Token struct {
	// Name is the caller's name, for the record. Names are unique.
	Name string `json:"name"`
	// SHA256 is the hash of the token, in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
	// Workspaces are ids, or "*" for all.
	Workspaces []string `json:"workspaces"`
	Rights     []Right  `json:"rights"`
}

// Right is something that a token allows: read, write, compile, dispatch or admin. None includes another.
type Right string

// LoadTokens reads a file of tokens. It refuses a file that belongs to another user than root, that others than its
// owner can read, or that has no tokens. Mistakes in the text are [Errors].
func LoadTokens(path string) (Tokens, error) {
	data, err := readFile(path, func(info fs.FileInfo) error { return owned.CheckSecret(path, info) })
	if err != nil {
		return Tokens{}, fmt.Errorf("tokens: %w", err)
	}
	return decodeTokens(data, path)
}

func decodeTokens(data []byte, path string) (Tokens, error) {
	var t Tokens
	r, root, err := document(data, path, "tokens:")
	if err != nil {
		return t, err
	}
	d := &decoder{report: r, rules: tokenRules}
	d.value(root, reflect.ValueOf(&t).Elem(), rule{})
	d.tokens(t.Tokens, root.child("tokens"))
	if err := r.err(); err != nil {
		return Tokens{}, err
	}
	if len(t.Tokens) == 0 {
		return t, Errors{{File: path, Message: "there are no tokens: nobody could use the gateway"}}
	}
	return t, nil
}

func (d *decoder) tokens(list []Token, n *node) {
	names, hashes := map[string]bool{}, map[string]bool{}
	for i := range list {
		t, at := &list[i], n.item(i)
		t.SHA256 = strings.ToLower(t.SHA256)
		if at := at.child("sha256"); at != nil && at.kind == textNode && !checksum().MatchString(t.SHA256) {
			d.badf(at, "a SHA-256 checksum has 64 hex digits; \"printf %%s TOKEN | sha256sum\" prints it")
		}
		switch {
		case strings.TrimSpace(t.Name) == "" && at.child("name") != nil:
			d.badf(at.child("name"), "the name is blank")
		case names[t.Name]:
			d.badf(at.child("name"), "there are two tokens %.80q", t.Name)
		case hashes[t.SHA256]:
			d.badf(at.child("sha256"), "there are two tokens with this hash")
		}
		names[t.Name], hashes[t.SHA256] = true, true
	}
}

//nolint:gochecknoglobals // a table
var tokenRules = map[string]rule{
	"Tokens.tokens":    needed("The tokens of the gateway's clients."),
	"Token.name":       needed("The caller's name, for the record."),
	"Token.sha256":     {doc: "The token's SHA-256 in hex; the token itself is not stored.", pattern: hexPattern, required: true},
	"Token.workspaces": needed("Ids of the workspaces that it reaches, or '*' for all."),
	"Token.rights":     needed("What it allows: read, write, compile, dispatch, admin."),
}
