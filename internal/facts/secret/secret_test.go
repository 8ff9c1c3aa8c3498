package secret

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestFindSeveral: findings come in order, without overlaps, and the surer pattern
// has the place.
func TestFindSeveral(t *testing.T) {
	t.Parallel()
	key := "ghp_" + roll(alnum, 36)
	text := "pin: 4471\npassword=" + key + " and card 4111111111111111, then " + key + "."
	var got []string
	for _, f := range New().Find(text) {
		got = append(got, f.Pattern+" "+text[f.Start:f.End])
	}
	want := []string{"pin 4471", "github-pat " + key, "credit-card 4111111111111111", "github-pat " + key}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestProse: people and programs write much that looks odd and is no secret.
func TestProse(t *testing.T) {
	t.Parallel()
	scanner := New()
	for _, text := range []string{
		"", "\xff\xfe", "We deploy on Tuesdays only. My name is Renée and I prefer tabs over spaces.",
		"The commit 3f786850e387550fdab836ed7e6dc881de23001b broke main, see #4471 and v1.26.0-rc.1+build.5.",
		"request id 550e8400-e29b-41d4-a716-446655440000, trace 4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
		"github.com/grapnelhq/grapnel v0.0.0-20240131120000-3f786850e387 h1:" + roll(alnum, 43) + "=",
		"sha256:" + roll(hex, 64) + " image digest",
		"Call +49 30 1234567 or write to someone@example.org on 2026-01-31T10:00:00Z.",
		"IBAN DE88 3704 0044 0532 0130 00, order 1234-5678-9012-3456-7",
		"The password policy says: at least 12 characters, one digit. Passwords are hashed with bcrypt.",
		"Forgot your password? Reset it. The token bucket refills at 100 tokens per second.",
		"func (s *Server) Password(ctx context.Context, token string) (secret []byte, err error) { return s.secrets[token], nil }",
		"secretKeyRef:\n  name: db\n  key: password",
		"密码要有八个字符。パスワードを変更してください。",
		"![](data:image/png;base64," + roll(alnum+"+/", 120) + "==)",
		strings.Repeat(roll(alnum+"+/", 76)+"\n", 30),
	} {
		for _, f := range scanner.Find(text) {
			t.Errorf("%s is found in %q: %q", f.Pattern, text, text[f.Start:f.End])
		}
	}
}

// TestFindHasBounds: a text of secrets alone gives no endless list.
func TestFindHasBounds(t *testing.T) {
	t.Parallel()
	scanner := New()
	for name, part := range map[string]string{
		"pin": "pin: 4471\n", "credit-card": "4111111111111111,\n", "private-key": "-----BEGIN PRIVATE KEY-----\n-----END \n", "random-token": roll(alnum, 40) + " ",
	} {
		got := scanner.Find(strings.Repeat(part, 2*maxFindings))
		if len(got) != maxFindings || got[0].Pattern != name {
			t.Errorf("%s: %d findings", name, len(got))
		}
	}
}

// TestJWT: a signed token has a header that names an algorithm.
func TestJWT(t *testing.T) {
	t.Parallel()
	scanner := New()
	for header, want := range map[string]bool{`{"alg":"HS256"}`: true, `{"typ":"JWT"}`: false, `{"alg`: false} {
		found := scanner.Find(signed(header))
		if got := len(found) == 1 && found[0].Pattern == "jwt"; got != want {
			t.Errorf("%q: %+v", header, found)
		}
	}
}

// TestNearMisses: what differs from a secret by a letter before or after is another
// word.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	scanner := New()
	key := "AKIA" + roll(base3, 16)
	for _, text := range []string{"x" + key, key + "x", "_" + key, key + "_", "9" + key, key[:19], strings.ToLower(key)} {
		if got := scanner.Find(text); len(got) > 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestCards pins which numbers have an issuer; all have the right last digit.
func TestCards(t *testing.T) {
	t.Parallel()
	scanner := New()
	for number, want := range map[string]bool{
		"4111111111111111": true, "4222222222222": true, "5555555555554444": true, "2223003122003222": true, "378282246310005": true,
		"6011111111111117": true, "3530111333300000": true, "30569309025904": true, "6200000000000005": true,
		"1234567812345670": false, "9999999999999995": false, "0000000000000000": false, "37828224631000500": false, "41111111111111111": false,
	} {
		got := len(scanner.Find("card "+number+".")) == 1
		if got != want {
			t.Errorf("%s: %t, want %t", number, got, want)
		}
	}
}

// FuzzFind: findings are in order, apart, inside the text, on whole characters, of
// known patterns, and the same each time; and a secret in front is found whatever
// follows on the next line.
func FuzzFind(f *testing.F) {
	scanner := New()
	known := map[string]bool{}
	for _, r := range scanner.rules {
		known[r.name] = true
	}
	for _, s := range samples() {
		f.Add(strings.NewReplacer("⟦", "", "⟧", "").Replace(s.has[0]))
		f.Add(s.not[0])
	}
	f.Add("-----BEGIN \xff PuTTY-User-Key-File- ://:@ 4111 -")
	f.Fuzz(func(t *testing.T, text string) {
		found := scanner.Find(text)
		if diff := cmp.Diff(found, scanner.Find(text)); diff != "" {
			t.Fatalf("twice is not once:\n%s", diff)
		}
		end := 0
		for _, finding := range found {
			if finding.Start < end || finding.End <= finding.Start || finding.End > len(text) || !known[finding.Pattern] {
				t.Fatalf("%+v in %q", found, text)
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[finding.Start:finding.End]) {
				t.Fatalf("%+v tears a character of %q", finding, text)
			}
			end = finding.End
		}
		first := scanner.Find("AKIA" + roll(base3, 16) + "\n" + text)
		if len(first) == 0 || first[0] != (Finding{"aws-access-token", 0, 20}) {
			t.Fatalf("%+v", first)
		}
	})
}
