package protect

// Defaults returns what is protected unless an operator says otherwise: the files in which programs keep passwords,
// tokens and private keys, and examples of such files that hold none.
func Defaults() (deny, allow []string) {
	deny = []string{
		".env", ".env.*", ".envrc", ".envrc.*", ".dev.vars", ".dev.vars.*",
		"id_rsa", "id_rsa.*", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519.*", "id_ed25519_sk",
		"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.p8", "*.kdbx",
		".ssh/", ".gnupg/", ".password-store/",
		".aws/credentials", ".aws/sso/cache/", ".aws/cli/cache/", ".azure/", ".config/gcloud/", "application_default_credentials.json",
		"service-account*.json", "service_account*.json", "serviceaccount*.json", "credentials.json", "client_secret*.json",
		".netrc", "_netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml",
		".kube/config", "kubeconfig", "*.kubeconfig", "kubeconfig.*", ".docker/config.json", ".dockercfg", ".dockerconfigjson",
		".pgpass", ".my.cnf", ".htpasswd", ".vault-token", "credentials.tfrc.json", ".terraformrc",
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".config/rclone/rclone.conf", ".streamlit/secrets.toml",
		".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", "opencode/auth.json",
		"/proc/*/environ", "/proc/*/task/*/environ", "/etc/shadow", "/etc/gshadow",
	}
	allow = []string{"*.example", "*.sample", "*.template", "*.dist", "*.example.*", "*.pub", ".ssh/known_hosts"}
	return deny, allow
}
