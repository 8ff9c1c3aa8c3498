package secret

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The letters of made-up secrets. No test has one in its source, so that nobody who
// looks for secrets finds these.
const (
	alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	small = "abcdefghijklmnopqrstuvwxyz"
	base3 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hex   = "0123456789abcdef"
)

// roll makes a text of n of some letters, always the same one.
func roll(letters string, n int) string {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(len(letters))))
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}

// signed makes a text of the shape of a JWT.
func signed(header string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(header)) + "." + enc([]byte(`{"sub":"1234567890"}`)) + "." + roll(alnum, 43)
}

// pem makes a block of the shape of a PEM file.
func pem(title string) string {
	return "-----BEGIN " + title + "-----\n" + roll(alnum+"+/", 64) + "\n" + roll(alnum+"+/", 63) + "=\n-----END " + title + "-----"
}

// samples has for each pattern texts with one secret, between "⟦" and "⟧", and texts
// that look like one and have none.
func samples() map[string]struct{ has, not []string } {
	type both = struct{ has, not []string }
	prefixed := func(tokens ...string) both {
		var b both
		for _, tok := range tokens {
			b.has = append(b.has, "⟦"+tok+"⟧", "it's (⟦"+tok+"⟧), keep it", "x=⟦"+tok+"⟧\n")
			b.not = append(b.not, tok[:10], "x_"+tok[:8]+"-like things")
		}
		return b
	}
	all := map[string]both{
		"age-secret-key":                prefixed("AGE-SECRET-KEY-1" + roll(upper+"0123456789", 58)),
		"aws-access-token":              prefixed("AKIA"+roll(base3, 16), "ASIA"+roll(base3, 16)),
		"gcp-api-key":                   prefixed("AIza" + roll(alnum+"_-", 34) + "a"),
		"google-oauth":                  prefixed("ya29."+roll(alnum, 60), "GOCSPX-"+roll(alnum, 28)),
		"azure-ad-client-secret":        prefixed("a1b8Q~" + roll(alnum, 34)),
		"digitalocean-pat":              prefixed("dop_v1_" + roll(hex, 64)),
		"alibaba-access-key-id":         prefixed("LTAI" + roll(alnum, 20)),
		"databricks-api-token":          prefixed("dapi" + roll(hex, 32)),
		"vault-token":                   prefixed("hvs." + roll(alnum, 24)),
		"flyio-token":                   prefixed("fo1_" + roll(alnum, 43)),
		"hashicorp-tf-api-token":        prefixed(roll(alnum, 14) + ".atlasv1." + roll(alnum, 67)),
		"github-pat":                    prefixed("ghp_" + roll(alnum, 36)),
		"github-app-token":              prefixed("ghs_" + roll(alnum, 36)),
		"github-fine-grained-pat":       prefixed("github_pat_" + roll(alnum, 22) + "_" + roll(alnum, 59)),
		"gitlab-token":                  prefixed("glpat-"+roll(alnum, 20), "glrt-"+roll(alnum, 20)),
		"atlassian-token":               prefixed("ATATT3" + roll(alnum, 180) + "=" + roll(hex, 8)),
		"npm-access-token":              prefixed("npm_" + roll(alnum, 36)),
		"pypi-token":                    prefixed("pypi-AgE" + roll(alnum, 120)),
		"rubygems-api-token":            prefixed("rubygems_" + roll(hex, 48)),
		"docker-token":                  prefixed("dckr_pat_" + roll(alnum, 27)),
		"anthropic-api-key":             prefixed("sk-ant-api03-" + roll(alnum, 95)),
		"openai-api-key":                prefixed("sk-proj-"+roll(alnum, 48), "sk-"+roll(alnum, 48)),
		"huggingface-token":             prefixed("hf_" + roll(alnum, 34)),
		"stripe-token":                  prefixed("sk_live_"+roll(alnum, 24), "rk_test_"+roll(alnum, 24), "whsec_"+roll(alnum, 32)),
		"slack-token":                   prefixed("xoxb-"+roll("0123456789", 12)+"-"+roll(alnum, 24), "xapp-1-"+roll(alnum, 30)),
		"telegram-bot-token":            prefixed("123456789:AA" + roll(alnum, 33)),
		"twilio-api-key":                prefixed("SK" + roll(hex, 32)),
		"sendgrid-api-token":            prefixed("SG." + roll(alnum, 22) + "." + roll(alnum, 43)),
		"mailgun-key":                   prefixed("key-" + roll(hex, 32)),
		"mailchimp-key":                 prefixed(roll(hex, 32) + "-us12"),
		"shopify-access-token":          prefixed("shpat_" + roll(hex, 32)),
		"square-token":                  prefixed("sq0atp-"+roll(alnum, 22), "EAAA"+roll(alnum, 60)),
		"grafana-service-account-token": prefixed("glsa_" + roll(alnum, 32) + "_" + roll(hex, 8)),
		"new-relic-key":                 prefixed("NRAK-" + roll(upper+"0123456789", 27)),
		"linear-key":                    prefixed("lin_api_" + roll(alnum, 40)),
		"notion-token":                  prefixed("ntn_"+roll(alnum, 46), "secret_"+roll(alnum, 43)),
		"supabase-token":                prefixed("sbp_" + roll(hex, 40)),
		"jwt":                           prefixed(signed(`{"alg":"HS256","typ":"JWT"}`)),
	}
	all["private-key"] = both{
		has: []string{
			"here: ⟦" + pem("PRIVATE KEY") + "⟧\nthanks", "⟦" + pem("RSA PRIVATE KEY") + "⟧", "⟦" + pem("PGP PRIVATE KEY BLOCK") + "⟧",
			"⟦-----BEGIN OPENSSH PRIVATE KEY-----\nand no end", "⟦PuTTY-User-Key-File-3: ssh-ed25519\nkey", pem("PUBLIC KEY") + "\n⟦" + pem("EC PRIVATE KEY") + "⟧",
		},
		not: []string{pem("CERTIFICATE"), pem("PUBLIC KEY"), pem("PGP PUBLIC KEY BLOCK"), "the private key is in the safe", "-----BEGIN "},
	}
	all["aws-secret-key"] = both{
		has: []string{
			"aws_secret_access_key = ⟦" + roll(alnum, 40) + "⟧", `"SecretAccessKey": "⟦` + roll(alnum+"/+", 40) + `⟧"`, "AWS secret key is ⟦" + roll(alnum, 40) + "⟧",
		},
		not: []string{"aws_secret_access_key = secret", "aws_secret_access_key = ${AWS_SECRET}"},
	}
	all["azure-storage-key"] = both{
		has: []string{"AccountName=a;AccountKey=⟦" + roll(alnum, 86) + "==⟧;x", "accountkey = ⟦" + roll(alnum, 86) + "==⟧"},
		not: []string{"AccountKey=secret", "AccountKey=<the key>"},
	}
	all["webhook-url"] = both{
		has: []string{
			"post to ⟦https://hooks.slack.com/services/T" + roll(alnum, 8) + "/B" + roll(alnum, 8) + "/" + roll(alnum, 24) + "⟧",
			"⟦https://discord.com/api/webhooks/123456/" + roll(alnum, 68) + "⟧",
		},
		not: []string{"https://hooks.slack.com/services/", "https://api.slack.com/messaging/webhooks"},
	}
	all["password-in-url"] = both{
		has: []string{"postgres://app:⟦hunter22⟧@db:5432/x", "https://me:⟦s3cr3t!⟧@example.org/x", "redis://:⟦tr0ub4dor⟧@cache"},
		not: []string{"postgres://app:password@db/x", "postgres://app:${PW}@db/x", "https://example.org:8080/@me", "https://a.org/x:y@z", "postgres://app:<password>@db"},
	}
	all["authorization-header"] = both{
		has: []string{"Authorization: Bearer ⟦" + roll(alnum, 24) + "1⟧", `-H "authorization: Basic ⟦` + roll(alnum, 20) + `==⟧"`, "bearer ⟦" + roll(hex, 20) + "7⟧"},
		not: []string{"Authorization: Bearer <token>", "the bearer authentication is off", "Authorization: Bearer $TOKEN_OF_MINE", "bearer notwithstanding"},
	}
	all["password-flag"] = both{
		has: []string{"mysql -u root --password ⟦hunter2⟧", "run --token=⟦abcdef12⟧ x", `curl -u me:⟦s3cr3t⟧ https://example.org`, "curl --user 'me:⟦s3cr3t⟧'"},
		not: []string{"run --password --verbose", "run --password $PASSWORD", "run --token <token>", "ls -u root", "--password string"},
	}
	all["password-assigned"] = both{
		has: []string{
			"password: ⟦hunter2⟧", "Password = '⟦correct-horse⟧'", "DB_PASSWORD=⟦S3cr3t!x⟧", `{"password": "⟦swordfish⟧"}`, "password: ⟦swordfish⟧", "pwd:⟦1234⟧",
			"API key: ⟦abc123def456⟧", "client_secret => \"⟦a1b2c3d4e5⟧\"", "Passwort: ⟦geheim12⟧", "mot de passe : ⟦Été2024!⟧", "contraseña: ⟦hola1234⟧", "access_token_v2 := ⟦zx81zx81⟧",
			"password (staging): ⟦hunter2⟧",
		},
		not: []string{
			"password: required", "password: string", "password = os.Getenv(\"PW\")", "password = form.password", "password = userInput", "PASSWORD=$DB_PASS", "password: ********",
			"password=<your password>", "token: string", "max_token = 4096", "token = next_token()", "tests pass: 45", "the password: it has to be long", "api_key: ${KEY}", "secret: true",
			"password: 'a b c d'", "token: https://example.org/token", "password: \"changeme\"", "secret: abc1", "key: value1234", "passengers: 1234567", "token = settings.API_TOKEN",
		},
	}
	all["password-said"] = both{
		has: []string{
			"my password is ⟦hunter2⟧", "The password for the VPN is ⟦Tr0ub4dor&3⟧", "our API token is ⟦abc123def456⟧", "my wifi password is ⟦swordfish⟧.", "the password is '⟦open sesame⟧'",
			"mein Passwort ist ⟦geheim12⟧", "la contraseña es ⟦hola1234⟧", "我的密码是⟦hunter2⟧", "パスワードは⟦hunter2⟧です", "the passphrase is now: ⟦c0rrect-horse⟧",
			"⟦hunter2⟧ is my password", "⟦hunter2⟧ ist mein Passwort", "⟦hunter2⟧ est mon mot de passe", "⟦hunter2⟧ es mi contraseña", "⟦hunter2⟧是我的密码", "⟦hunter2⟧が私のパスワードです",
			"By the way, ⟦swordfish⟧ is my wifi password.", "Merk dir, dass mein Passwort ⟦Sommer2024⟧ ist.", "my password ⟦hunter2⟧ does not work", "remember that '⟦open sesame⟧' is our password",
			"wifi密码 ⟦abc12345⟧", "WiFi密码⟦abc12345⟧", "パスワード ⟦abc12345⟧", "비밀번호 ⟦abc12345⟧", "your login is admin, password ⟦admin123⟧", "user: bob, pw ⟦hunter22⟧", "the username is bob and the password ⟦hunter22⟧",
		},
		not: []string{
			"the password is wrong", "my password is expired, what now?", "the password is too short", "the token is stored in Vault", "the password is checked by the server", "the secret is patience",
			"the token is 2048 bits long", "my password manager is Bitwarden1", "the password is <password>", "is the password is required?", "密码是什么",
			"this is my password", "what is my password?", "Where is the password", "Security is the password policy2", "my password manager 1Password", "c'est mon mot de passe", "das ist mein Passwort",
			"这是我的密码", "これが私のパスワードです", "my password policy forbids that", "mein Passwort funktioniert nicht",
			"密码 required", "密码 12345位", "the login is slow, password resets work", "密码8到16位", "our login has users, password rules and roles",
		},
	}
	all["pin"] = both{
		has: []string{"my PIN is ⟦4471⟧", "PIN: ⟦123456⟧", "the pin for my card is ⟦9981⟧.", "cvv: ⟦123⟧", "⟦4471⟧ is my PIN"},
		not: []string{"pin 12 is high", "PIN: 2.4.1", "the spin is 4471", "we pin it to 2.4", "pin: 12"},
	}
	all["recovery-phrase"] = both{
		has: []string{"my seed phrase is ⟦" + words(12) + "⟧", "Recovery words: ⟦" + words(24) + "⟧"},
		not: []string{"my seed phrase is " + words(5), "the recovery phase is over: " + words(4)},
	}
	all["credit-card"] = both{
		has: []string{
			"⟦" + "4111" + " 1111 1111 1111⟧", "pay with ⟦5500-0000-0000-0004⟧.", "amex ⟦3782 822463 10005⟧ please", "⟦" + "4111" + "111111111111⟧ 12/27 123", "12 27 ⟦4012" + "888888881881⟧",
		},
		not: []string{
			"4111 1111 1111 1112", "1234567812345670", "id-4111111111111111", "4111111111111111abc", "0x4111111111111111", "4.111111111111111", "41 11 11 11 11 11 11 11", "+4111111111111111",
			"550e8400-e29b-41d4-a716-446655440000", "1700000000000000000", "0000 0000 0000 0000", "4111 1111-1111 1111", "4111111111111111.5",
		},
	}
	all["iban"] = both{
		has: []string{
			"IBAN ⟦DE89 3704 0044 0532 0130 00⟧, please", "⟦GB29NWBK60161331926819⟧", "pay to ⟦be68 5390 0754 7034⟧ thanks", "⟦FR14-2004-1010-0505-0001-3M02-606⟧.",
		},
		not: []string{"DE88 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 001", "XX89 3704 0044 0532 0130 00", "DE89 3704", "build be68 of 5390"},
	}
	all["national-id"] = both{
		has: []string{
			"my SSN is ⟦078-05-1120⟧", "NI number ⟦AB 12 34 56 C⟧.", "mi DNI es ⟦12345678Z⟧", "NIE: ⟦X-1234567-L⟧", "numéro ⟦2 69 05 49 588 157 80⟧", "meine Steuer-ID ist ⟦86 095 742 719⟧",
			"Rentenversicherung ⟦15070649C103⟧", "我的身份证是 ⟦11010519491231002X⟧", "マイナンバーは ⟦1234 5678 9018⟧",
		},
		not: []string{
			"000-05-1120", "call 555-0134-1120", "12345678A", "2 69 05 49 588 157 81", "86 095 742 719", "Steuer 86 095 742 718", "15070649C104", "110105194912310021", "1234 5678 9018",
			"マイナンバーは 1234 5678 9019", "order 078-05-1120-7",
		},
	}
	all["random-token"] = both{
		has: []string{
			"⟦" + roll(alnum, 40) + "⟧", "token for CI\n⟦" + roll(alnum, 24) + "⟧", "key ⟦" + roll("abcdef0123456789xyz", 40) + "⟧", "use ⟦" + roll(alnum, 48) + "⟧ there",
		},
		not: []string{
			roll(hex, 40), roll(hex, 64), strings.ToUpper(roll(hex, 32)), "550e8400-e29b-41d4-a716-446655440000", "key 550e8400-e29b-41d4-a716-446655440000",
			"data:image/png;base64," + roll(alnum+"+/", 100), roll(alnum+"+/", 400), roll(alnum, 76) + "\n" + roll(alnum, 76) + "\n" + roll(alnum, 52),
			"https://example.org/document/d/" + roll(alnum, 44) + "/edit", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + roll(alnum, 40), "sha512-" + roll(alnum, 86) + "==", "h1:" + roll(alnum, 43) + "=",
			"SHA256:" + roll(alnum, 43), "TheQuickBrownFoxJumpsOver13LazyDogs2024", "com.example.very.long.package.name.Version2Impl3Test4", "key some_very_long_identifier_2024_12_31",
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "release-2024-12-31T23-59-59-000000001Z", roll(alnum, 19), pem("CERTIFICATE"), "commit key " + roll(hex, 40),
			"Donaudampfschifffahrtsgesellschaftskapitaen2024", "/home/me/Projects/Grapnel/Internal/Testdata/File0001Golden0002",
		},
	}
	return all
}

// words makes a phrase of n words.
func words(n int) string {
	list := []string{"abandon", "ability", "able", "about", "above", "absent", "absorb", "abstract"}
	var all []string
	for i := range n {
		all = append(all, list[i%len(list)])
	}
	return strings.Join(all, " ")
}

// TestRules: every rule compiles, has a name, and keywords that its expression can meet.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := New().rules
	if len(rules) < 130 {
		t.Errorf("%d rules", len(rules))
	}
	for _, r := range rules {
		if r.spans == nil && (r.name == "" || r.re() == nil || len(r.keywords) == 0 && r.digits == 0) {
			t.Errorf("rule %q: %q", r.name, r.keywords)
		}
		for _, k := range r.keywords {
			if k != strings.ToLower(k) {
				t.Errorf("rule %q: the keyword %q is not in lower case", r.name, k)
			}
		}
	}
}

// TestPatterns holds each pattern to its samples: it finds exactly the secret, or the
// whole scanner finds nothing.
func TestPatterns(t *testing.T) {
	t.Parallel()
	scanner := New()
	all := samples()
	for _, r := range slices.Concat(load(formats), passwords(), said(), numbers()) {
		if s := all[r.name]; len(s.has) < 2 || len(s.not) < 2 {
			t.Errorf("%s has %d and %d samples", r.name, len(s.has), len(s.not))
		}
	}
	for name, s := range all {
		if !slices.ContainsFunc(scanner.rules, func(r rule) bool { return r.name == name }) {
			t.Errorf("there is no pattern %s", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, marked := range s.has {
				checkFound(t, scanner, name, marked)
			}
			for _, text := range s.not {
				for _, f := range scanner.Find(text) {
					t.Errorf("%s is found in %q: %q", f.Pattern, text, text[f.Start:f.End])
				}
			}
		})
	}
}

// checkFound compares what is found with the marks. A text without the second one has
// a secret up to its end.
func checkFound(t *testing.T, scanner *Scanner, name, marked string) {
	t.Helper()
	before, rest, _ := strings.Cut(marked, "⟦")
	value, after, _ := strings.Cut(rest, "⟧")
	text := before + value + after
	found := scanner.Find(text)
	if len(found) != 1 {
		t.Errorf("%q: %+v, want one", text, found)
		return
	}
	got := text[found[0].Start:found[0].End]
	if found[0].Pattern != name || strings.TrimRight(got, ".,;:)]") != value {
		t.Errorf("%q: %s %q, want %s %q", text, found[0].Pattern, got, name, value)
	}
}
