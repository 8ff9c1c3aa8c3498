package secret

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHidden puts made-up secrets into prose: whatever stands around them, they are
// found at their place, by their pattern.
func TestHidden(t *testing.T) {
	t.Parallel()
	scanner := New()
	prose := strings.Fields(`We deploy on Tuesdays only, and the staging database lives on port 5433. Réne said: "ask Zoë" (again)! 请看 这里。`)
	secrets := map[string]string{
		"github-pat": "ghp_" + roll(alnum, 36), "aws-access-token": "AKIA" + roll(base3, 16), "jwt": signed(`{"alg":"none"}`),
		"credit-card": "4111 1111 1111 1111", "slack-token": "xoxb-" + roll("0123456789", 12), "random-token": roll(alnum, 40),
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		for name, value := range secrets {
			var parts []string
			for range rng.IntN(12) {
				parts = append(parts, prose[rng.IntN(len(prose))])
			}
			before := strings.Join(parts, " ")
			if before != "" {
				before += []string{" ", "\n", " (", ": "}[rng.IntN(4)]
			}
			text := before + value + []string{"", " ", "\n", ", ", ")."}[rng.IntN(5)]
			want := []Finding{{name, len(before), len(before) + len(value)}}
			if diff := cmp.Diff(scanner.Find(text), want); diff != "" {
				t.Fatalf("%q (-got +want):\n%s", text, diff)
			}
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
