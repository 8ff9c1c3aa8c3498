package secret

import (
	"regexp"
	"slices"
)

// pattern is one kind of secret. Either it has an expression or it has spans.
type pattern struct {
	name string
	// needs are texts in lower case of which one is in every text that has the secret.
	needs []string
	// head matches from where one of needs is.
	head *regexp.Regexp
	// token says that the secret itself begins there, so that no part of one may be
	// before it. Otherwise a name begins there, and head sees a bounded part of what
	// follows.
	token bool
	// re matches around where one of needs is.
	re *regexp.Regexp
	// check has the last word on what matched. Nil is that it is right.
	check func(text string, from, to int) bool
	// spans finds it without an expression.
	spans func(name, text string) []Finding
}

// patterns is the table. Formats that say what they are come first, then passwords
// by what stands before them, then what only looks random.
func patterns() []pattern {
	return slices.Concat(keys(), cloud(), forges(), services(), written(), numbers(), random())
}

// token is a row of a format that begins with one of needs. Letters, digits and "_"
// around it would make it a part of something else.
func token(name, body string, needs ...string) pattern {
	return pattern{name: name, needs: needs, head: regexp.MustCompile(`^(?:` + body + `)`), token: true, check: whole}
}

// tokenAround is a row of a format that has one of needs somewhere.
func tokenAround(name, body string, needs ...string) pattern {
	return pattern{name: name, needs: needs, re: regexp.MustCompile(`\b(?:` + body + `)`), check: whole}
}

// keys are private keys and signed tokens.
func keys() []pattern {
	jwt := token("jwt", `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, "eyj")
	jwt.check = isJWT
	return []pattern{
		{name: "private_key", needs: []string{"private key", "putty-user-key-file"}, spans: privateKeys},
		token("age_key", `AGE-SECRET-KEY-1[0-9A-Z]{58}`, "age-secret-key-1"),
		jwt,
	}
}

// cloud are keys of those who rent out machines.
func cloud() []pattern {
	return []pattern{
		token("aws_access_key", `(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}`, "akia", "asia", "abia", "acca"),
		{
			name: "aws_secret_key", needs: []string{"aws", "secret"},
			head:  regexp.MustCompile(`(?i)^(?:aws|secret)[a-z_ -]{0,24}key[a-z_ ]{0,12}["']? ?(?:=>|:=|=|:| is ) ?["']?([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])`),
			check: mixed,
		},
		token("google_api_key", `AIza[0-9A-Za-z_-]{35}`, "aiza"),
		token("google_oauth", `ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{28}|1//0[0-9A-Za-z_-]{40,}`, "ya29.", "gocspx-", "1//0"),
		{name: "azure_storage_key", needs: []string{"accountkey"}, head: regexp.MustCompile(`(?i)^AccountKey ?= ?([A-Za-z0-9+/]{86}==)`)},
		tokenAround("azure_client_secret", `[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}`, "q~"),
		token("digitalocean_token", `do[opr]_v1_[a-f0-9]{64}`, "doo_v1_", "dop_v1_", "dor_v1_"),
		token("alibaba_key", `LTAI[A-Za-z0-9]{16,26}`, "ltai"),
		token("databricks_token", `dapi[a-f0-9]{32}(?:-\d+)?`, "dapi"),
		token("vault_token", `hv[sb]\.[A-Za-z0-9_-]{24,}`, "hvs.", "hvb."),
		token("flyio_token", `fo1_[A-Za-z0-9_-]{43}`, "fo1_"),
		tokenAround("terraform_token", `[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}`, ".atlasv1."),
	}
}

// forges are tokens of code hosts and package registries.
func forges() []pattern {
	return []pattern{
		token("github_token", `gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
		token("gitlab_token", `gl(?:pat|dt|rt|oas|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{20,}`, "glpat-", "gldt-", "glrt-", "gloas-", "glcbt-", "glptt-", "glft-", "glsoat-"),
		token("atlassian_token", `ATATT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{32}`, "atatt3", "atbb"),
		token("npm_token", `npm_[A-Za-z0-9]{36}`, "npm_"),
		token("pypi_token", `pypi-AgE[A-Za-z0-9_-]{50,}`, "pypi-age"),
		token("rubygems_key", `rubygems_[a-f0-9]{48}`, "rubygems_"),
		token("docker_token", `dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}`, "dckr_"),
	}
}

// services are keys of other services.
func services() []pattern {
	return []pattern{
		token("anthropic_key", `sk-ant-[a-z]+\d+-[A-Za-z0-9_-]{20,}`, "sk-ant-"),
		token("openai_key", `sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}`, "sk-"),
		token("huggingface_token", `hf_[A-Za-z0-9]{30,}`, "hf_"),
		token("stripe_key", `[sr]k_(?:live|test)_[0-9A-Za-z]{10,}|whsec_[0-9A-Za-z+/=]{24,}`, "sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"),
		token("slack_token", `xox[abeoprs]-[0-9A-Za-z-]{10,}|xapp-\d-[0-9A-Za-z-]{10,}`, "xox", "xapp-"),
		{
			name: "webhook_url", needs: []string{"https://"},
			head: regexp.MustCompile(`^https://(?:hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}|(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_-]{20,}|[a-z0-9-]+\.webhook\.office\.com/[A-Za-z0-9@/_-]{20,})`),
		},
		tokenAround("telegram_token", `\d{8,10}:AA[A-Za-z0-9_-]{33}`, ":aa"),
		token("twilio_key", `SK[0-9a-f]{32}`, "sk"),
		token("sendgrid_key", `SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`, "sg."),
		token("mailgun_key", `key-[0-9a-f]{32}`, "key-"),
		tokenAround("mailchimp_key", `[0-9a-f]{32}-us\d{1,2}`, "-us"),
		token("shopify_token", `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`, "shp"),
		token("square_token", `sq0(?:atp|csp|idp)-[0-9A-Za-z_-]{22,}|EAAA[0-9A-Za-z_-]{60}`, "sq0", "eaaa"),
		token("grafana_token", `glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,}`, "glsa_", "glc_"),
		token("newrelic_key", `NRAK-[A-Z0-9]{27}`, "nrak-"),
		token("linear_key", `lin_(?:api|oauth)_[A-Za-z0-9]{40,}`, "lin_"),
		token("notion_token", `secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,}`, "secret_", "ntn_"),
		token("supabase_token", `sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,}`, "sbp_", "sb_secret_"),
	}
}

// Names of what is secret, as they stand before a value.
const (
	secretName = `pass(?:word|wd|phrase|code)?|pwd|secret(?:[ _-]?key)?|(?:api|access|auth|private|signing|encryption|service|account|license|deploy|master|shared)[ _-]?key|token|credentials?|connection[ _-]?string` //nolint:gosec // a pattern of names, no credential
	foreign    = `passwort|kennwort|mot de passe|mdp|contraseña|contrasena|clave|senha|wachtwoord|hasło|пароль`
	eastern    = `密码|密碼|口令|パスワード|暗証番号|비밀번호`
)

// secretNames are the beginnings of the names.
func secretNames() []string {
	return []string{
		"pass", "pwd", "secret", "api", "access", "auth", "private", "signing", "encryption", "service", "account", "license", "deploy", "master", "shared",
		"token", "credential", "connection", "kennwort", "mot de passe", "mdp", "contrase", "clave", "senha", "wachtwoord", "hasło", "пароль", "Пароль",
	}
}

// quotedOr is a value: in quotes, or up to a space.
const quotedOr = `("[^"\n]+"|'[^'\n]+'|` + "`[^`\n]+`" + `|[^\s"'` + "`" + `]+)`

// written are secrets that somebody names: in URLs, headers, assignments, flags and
// sentences.
func written() []pattern {
	return []pattern{
		{
			name: "url_password", needs: []string{"://"},
			re:    regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'<>]*:([^\s/@"'<>]+)@[A-Za-z0-9\[]`),
			check: notOrdinary,
		},
		{
			name: "authorization", needs: []string{"authorization", "bearer"},
			head:  regexp.MustCompile(`(?i)^(?:authorization["']?\s?[:=]\s?["']?(?:bearer|basic|token|apikey)\s|bearer\s)["']?([A-Za-z0-9._~+/=-]{12,})`),
			check: looksChosen,
		},
		{
			name: "flag_password", needs: []string{"-pass", "-pwd", "-token", "-secret", "-api", "-auth", "-access", "-u ", "--user"},
			re:    regexp.MustCompile(`(?i)(?:^|\s)(?:--?(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|auth-?token|access-?key)(?:=| )|(?:-u|--user)(?: |=)["']?[^\s:"']+:)` + quotedOr),
			check: flagged,
		},
		{
			name: "assigned_password", needs: secretNames(),
			head:  regexp.MustCompile(`(?i)^(?:` + secretName + `|` + foreign + `)(?:[_-][a-z0-9]+)*(?:["'` + "`" + `\])]| \([^)\n]{0,32}\))?[ \t]*(?:=>|:=|==?|:)[ \t]*` + quotedOr),
			check: assigned,
		},
		{
			name: "told_password", needs: secretNames(),
			head:  regexp.MustCompile(`(?i)^(?:` + secretName + `|` + foreign + `)(?: (?:for|of|to|on|at|in|from|für|von|pour|de|para|del?)(?: [^\s.,;:!?]+){1,5}?)? (?:is|was|will be|equals|ist|lautet|war|est|es|é|jest)(?: (?:now|still|currently|set to|jetzt|ahora|maintenant))?:? ` + quotedOr),
			check: told,
		},
		{
			name: "told_password", needs: []string{"密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호"},
			head:  regexp.MustCompile(`^(?:` + eastern + `)(?:是|为|為|は|:|：|=|는|은)[ 「“"]?([!-~]{4,})`),
			check: notPlaceholder,
		},
		{
			name: "pin", needs: []string{"pin", "cvv", "cvc", "puk"},
			head: regexp.MustCompile(`(?i)^(?:pin|cvv2?|cvc2?|puk)(?:[ -](?:code|number|nummer))?(?: (?:for|of|to)(?: [a-z0-9']+){1,4}?)?(?: is|: ?| ?= ?| ist| est| es) ?(\d{3,8})(?:$|[^\d.]|\.(?:$|\s))`),
		},
		{
			name: "recovery_phrase", needs: []string{"seed", "recovery", "mnemonic", "backup"},
			head: regexp.MustCompile(`(?i)^(?:seed|recovery|mnemonic|backup)[ -]?(?:phrase|words?|seed)?[^\n:=]{0,24}(?:is|are|:|=)\s{0,4}((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b`),
		},
	}
}

// numbers are secrets of digits alone.
func numbers() []pattern {
	return []pattern{{name: "credit_card", spans: cards}}
}

// random is what looks as if a machine had rolled dice.
func random() []pattern {
	return []pattern{{name: "random_token", spans: randomTokens}}
}
