package rpc

import (
	"strings"
	"testing"
)

func TestCheckTokens(t *testing.T) {
	t.Parallel()

	good := Token{Name: "ann", SHA256: sum("a"), Rights: Rights()}
	tests := []struct {
		name   string
		tokens []Token
		want   []string // each is in the message
	}{
		{"none", nil, nil},
		{"good", []Token{good}, nil},
		{"no name", []Token{{SHA256: sum("a")}}, []string{"token 1 has no name"}},
		{"twice", []Token{good, good}, []string{`token "ann": duplicate name`}},
		{"the secret itself", []Token{{Name: "x", SHA256: "secret"}}, []string{"64 hexadecimal digits"}},
		{"too short a hash", []Token{{Name: "x", SHA256: sum("a")[:62]}}, []string{"64 hexadecimal digits"}},
		{"too long a hash", []Token{{Name: "x", SHA256: sum("a") + "00"}}, []string{"64 hexadecimal digits"}},
		{"another's hash", []Token{good, {Name: "bob", SHA256: strings.ToUpper(sum("a"))}}, []string{`token "bob": sha256 is that of another token`}},
		{"the hash of nothing", []Token{{Name: "x", SHA256: sum("")}}, []string{"or of the empty text"}},
		{"a workspace without an id", []Token{{Name: "x", SHA256: sum("a"), Workspaces: []string{"w", ""}}}, []string{`token "x": a workspace without an id`}},
		{"unknown right", []Token{{Name: "x", SHA256: sum("a"), Rights: []Right{"root"}}}, []string{`unknown right "root"`}},
		{"all at once", []Token{{}, {Name: "x"}}, []string{"token 1 has no name", `token "x": sha256`}},
	}
	for _, tt := range tests {
		err := CheckTokens(tt.tokens)
		if (err == nil) != (tt.want == nil) {
			t.Fatalf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q", tt.name, err, part)
			}
		}
	}
}
