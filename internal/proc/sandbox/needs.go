package sandbox

import (
	"debug/elf"
	"io"
	"os"
	"strings"
)

// Access is what may be done with a path. The zero value is nothing.
type Access uint8

// The kinds of access, each including the one before.
const (
	AccessNone  Access = iota
	AccessRead         // reading and executing files and listing directories
	AccessUse          // reading and writing existing files
	AccessWrite        // everything but making device nodes and using ioctl on devices
	AccessAll          // everything
)

// Kind is a property of a program that decides what it needs.
type Kind uint8

// The kinds of programs.
const (
	KindEvery   Kind = iota // every program
	KindDynamic             // a dynamically linked program, or a script
	KindScript              // KindScript runs in an interpreter
	KindNetwork             // KindNetwork was granted network
)

// Need is a row of [Needs]. Why says what fails without it.
type Need struct {
	Kind   Kind
	Access Access
	Paths  []string
	Why    string
}

// Needs is what a confined program gets without a grant, beside its own file, its interpreter, its loader and
// its private directory. Absent paths are skipped. Deliberately not in it: /proc, which shows the arguments of
// all processes; /sys; /tmp, since TMPDIR is private; and the home directory.
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

// Program is what is going to be started.
type Program struct {
	Files  []*os.File // the program, or a script and its interpreter. The caller keeps them
	Script bool       // Script says that an interpreter runs it
	Dir    string     // the program's private directory, which it may use freely
}

func (p Program) kinds(n Net) (kinds map[Kind]bool, loaders []string) {
	kinds = map[Kind]bool{KindEvery: true, KindNetwork: !n.none(), KindScript: p.Script, KindDynamic: p.Script}
	for _, f := range p.Files {
		if path := loader(f); path != "" {
			kinds[KindDynamic] = true
			loaders = append(loaders, path)
		}
	}
	return kinds, loaders
}

// loader returns the path of an ELF program's loader, or "".
func loader(f io.ReaderAt) string {
	image, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	for _, segment := range image.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		path, err := io.ReadAll(segment.Open())
		if err != nil {
			return ""
		}
		return strings.TrimRight(string(path), "\x00")
	}
	return ""
}
