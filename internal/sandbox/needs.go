package sandbox

// Access is what may be done with a path. The zero value is nothing.
type Access uint8

// The kinds of access, each with all of the one before.
const (
	AccessNone Access = iota
	// AccessRead is reading and executing files and listing folders.
	AccessRead
	// AccessUse is reading and writing files that exist.
	AccessUse
	// AccessWrite is all that can be done with files and folders, but making
	// device nodes and commanding devices.
	AccessWrite
	// AccessAll is that too.
	AccessAll
)

// Kind is a property of a program that decides what it needs.
type Kind uint8

// The kinds of programs.
const (
	// KindEvery is every program.
	KindEvery Kind = iota
	// KindDynamic is one that a loader links at its start, or a script.
	KindDynamic
	// KindScript is one that an interpreter runs.
	KindScript
	// KindNetwork is one that was granted network.
	KindNetwork
)

// Need is one path that a program may use without a grant.
type Need struct {
	Kind   Kind
	Access Access
	Paths  []string
	// Why says what does not work without it.
	Why string
}

// Needs is the table of what a confined program gets without a grant, beside
// its own file, that of its interpreter and of its loader, and its private
// folder. A path that is absent is left out. Not in it, on purpose: /proc,
// which shows the arguments of all processes; /sys; /tmp, since TMPDIR is the
// private folder; and the home folder.
func Needs() []Need {
	return []Need{
		{KindEvery, AccessUse, []string{"/dev/null", "/dev/zero", "/dev/full"}, "programs open them as their first act"},
		{KindEvery, AccessRead, []string{"/dev/urandom", "/dev/random"}, "random numbers where the system call is not used"},
		{KindEvery, AccessRead, []string{"/etc/localtime", "/usr/share/zoneinfo"}, "local time would silently be UTC"},
		{KindDynamic, AccessRead, []string{
			"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/lib", "/usr/local/lib64",
		}, "shared libraries, and the standard libraries of interpreters"},
		{KindDynamic, AccessRead, []string{"/etc/ld.so.cache", "/etc/ld.so.preload"}, "the loader's index of libraries"},
		{KindDynamic, AccessRead, []string{"/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies"}, "interpreters with OpenSSL in them end at once"},
		{KindScript, AccessRead, []string{"/bin", "/usr/bin", "/usr/local/bin", "/usr/share"}, "interpreters found by env, and the programs that scripts start"},
		{KindNetwork, AccessRead, []string{
			"/etc/resolv.conf", "/run/systemd/resolve", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/host.conf", "/etc/services",
		}, "names of machines could not be resolved"},
		{KindNetwork, AccessRead, []string{
			"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
			"/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		}, "the certificates of other machines could not be checked"},
	}
}
