package runtime_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	sdkserve "github.com/grapnelhq/grapnel/sdk/serve"
)

// hostile is the test binary as a plugin that means harm, where the modes of badplugin
// are mistakes. Its first argument is the behaviour, the others say what there is to
// attack: "canary=" a directory, "host=" a process, and so on.
type hostile struct{ *badProgram }

// hostileModes is the mode "hostile" for badplugin.
func hostileModes() map[string]func(*badProgram) error {
	return map[string]func(*badProgram) error{modeRandom: randomly, "hostile": func(p *badProgram) error {
		if len(p.Args) == 0 || behaviours()[p.Args[0]] == nil {
			return fmt.Errorf("no behaviour %q", p.Args)
		}
		return behaviours()[p.Args[0]](&hostile{p})
	}}
}

// hostileBehaviours lists the behaviours.
func hostileBehaviours() []string { return slices.Sorted(maps.Keys(behaviours())) }

func behaviours() map[string]func(*hostile) error {
	all := map[string]func(*hostile) error{}
	for _, part := range []map[string]func(*hostile) error{
		handshakes(), http2Attacks(), frameAttacks(), describeAttacks(), answerAttacks(), hostCallAttacks(), processAttacks(), directoryAttacks(), reachAttacks(),
	} {
		for name, run := range part {
			if all[name] != nil {
				panic("two behaviours are called " + name)
			}
			all[name] = run
		}
	}
	return all
}

// did reports what came of an attack: "done", "ok", "denied". A test waits for it.
func (p *hostile) did(what string) { _, _ = fmt.Fprintln(p.Stderr, "did "+what) }

// attack serves a plugin that attacks when it is called first, and reports whether the
// attack could be made.
func attack(do func(*hostile) error) func(*hostile) error {
	return func(p *hostile) error {
		return p.serveAttack(func(context.Context, *sdk.Call) {
			if err := do(p); err != nil {
				p.did("failed " + err.Error())
				return
			}
			p.did("done")
		})
	}
}

// attempt reports whether an attack was possible.
func (p *hostile) attempt(err error) {
	if err != nil {
		p.did("denied " + err.Error())
		return
	}
	p.did("ok")
}

// serveAttack serves one hook, "h", that attacks when it is called first, reports
// that, and answers.
func (p *hostile) serveAttack(attack func(ctx context.Context, c *sdk.Call)) error {
	var once sync.Once
	return sdkserve.Serve(&sdk.Plugin{
		Name: "hostile", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "h", Phase: hostilePhase, Kinds: harmlessKinds(),
			Any: func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				once.Do(func() { attack(ctx, c) })
				return sdk.Reply(&phases.PromptSection{SectionID: badSection, Content: strings.Repeat("x", 10)})
			},
		}},
		Tools: []sdk.Tool{{Tool: phases.Tool{Name: "job", Description: "does nothing"}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("done"), nil
		}}},
	})
}

// hostilePhase is the phase of the mode's hooks: one of the host's own that takes all
// kinds of contributions.
const hostilePhase = "x.hostile.all"

// environWithout is the environment but for some variables.
func environWithout(names ...string) []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// handshakes are attacks on the start: lines that are not a handshake, or nearly one,
// and what comes around it.
func handshakes() map[string]func(*hostile) error {
	all := map[string]func(*hostile) error{
		"shake-twice":        (*hostile).shakeTwice,
		"shake-by-child":     (*hostile).shakeByChild,
		"shake-then-exec":    (*hostile).shakeThenExec,
		"shake-then-exit":    func(p *hostile) error { return p.shake(shaken) },
		"shake-then-close":   (*hostile).shakeThenClose,
		"shake-binary-noise": func(p *hostile) error { return p.shake("\x00\xff\xfe\x1b]0;title\x07\n") },
		"shake-no-newline":   func(p *hostile) error { return errors.Join(p.shake(strings.Repeat("1|", 1<<20)), p.Block()) },
		"shake-and-flood":    (*hostile).shakeAndFlood,
	}
	for name, line := range lines() {
		all["line-"+name] = func(p *hostile) error {
			l, err := listenAt("unix", socketPath())
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			return errors.Join(p.shake(line()+"\n"), p.Block())
		}
	}
	return all
}

// shaken is the handshake of a socket that nobody listens on.
const shaken = "1|1|unix|/nowhere|grpc\n"

// shake writes to standard output and says so.
func (p *hostile) shake(text string) error {
	p.did("done")
	_, err := p.Stdout.WriteString(text)
	return err
}

// lines are handshakes that are wrong in one place.
func lines() map[string]func() string {
	good := func(format string) func() string {
		return func() string { return fmt.Sprintf(format, socketPath()) }
	}
	plain := func(line string) func() string { return func() string { return line } }
	certified := func(format string) func() string {
		return func() string { return fmt.Sprintf(format, socketPath(), certificate()) }
	}
	return map[string]func() string{
		// A certificate where the host asked for none.
		"certificate":         certified("1|1|unix|%s|grpc|%s"),
		"certificate-text":    good("1|1|unix|%s|grpc|!!!!"),
		"certificate-mux":     certified("1|1|unix|%s|grpc|%s|true"),
		"certificate-garbage": good("1|1|unix|%s|grpc|" + base64.RawStdEncoding.EncodeToString([]byte("0\x82garbage"))),
		"multiplex":           good("1|1|unix|%s|grpc||true"),
		"many-fields":         good("1|1|unix|%s|grpc" + strings.Repeat("|x", 1000)),
		"empty":               plain(""),
		"bars":                plain("|||||||"),
		"short":               plain("1|1"),
		"huge-version":        good("1|99999999999999999999|unix|%s|grpc"),
		"negative":            good("-1|-1|unix|%s|grpc"),
		"crlf":                good("1|1|unix|%s|grpc\r"),
		"nul":                 good("1|1|unix|%s\x00/x|grpc"),
		"not-utf8":            good("1|1|unix|%s\xff|grpc"),
		"file":                plain("1|1|unix|/etc/passwd|grpc"),
		"directory":           plain("1|1|unix|/|grpc"),
		"relative":            plain("1|1|unix|../../s|grpc"),
		"abstract":            plain("1|1|unix|@grapnel-hostile|grpc"),
		"no-address":          plain("1|1|unix||grpc"),
		"long-path":           plain("1|1|unix|/" + strings.Repeat("a", 3000) + "|grpc"),
		"long-line":           plain("1|1|unix|/" + strings.Repeat("a", 1<<20) + "|grpc"),
		"tcp-of-others":       plain("1|1|tcp|127.0.0.1:1|grpc"),
		"tcp-elsewhere":       plain("1|1|tcp|192.0.2.1:80|grpc"),
		"tcp-name":            plain("1|1|tcp|localhost:80|grpc"),
		"tcp-zone":            plain("1|1|tcp|[::1%eth0]:80|grpc"),
		"tcp-mapped":          plain("1|1|tcp|[::ffff:127.0.0.1]:1|grpc"),
		"udp":                 plain("1|1|udp|127.0.0.1:80|grpc"),
		"other-transport":     good("1|1|unix|%s|netrpc"),
		"transport-by-spaces": good("1|1|unix|%s| grpc "),
	}
}

// certificate is a real one, as go-plugin writes it.
func certificate() string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err.Error()
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return err.Error()
	}
	return base64.RawStdEncoding.EncodeToString(der)
}

// shakeTwice writes its handshake and another one, of another socket.
func (p *hostile) shakeTwice() error {
	if _, err := p.Stdout.WriteString("1|1|unix|" + socketPath() + "|grpc\n" + shaken); err != nil {
		return err
	}
	p.did("done")
	return p.Block()
}

// shakeByChild lets a child serve in its place, and waits.
func (p *hostile) shakeByChild() error {
	cmd := p.Child("good")
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.did("done")
	return errors.Join(cmd.Wait(), p.Block())
}

// shakeThenExec becomes another program right after the handshake.
func (p *hostile) shakeThenExec() error {
	l, err := listenAt("unix", socketPath())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := p.Handshake(1); err != nil {
		return err
	}
	p.did("done")
	return syscall.Exec(os.Args[0], []string{os.Args[0], asProgram, "sleeper"}, os.Environ())
}

// shakeThenClose accepts one connection and listens no more.
func (p *hostile) shakeThenClose() error {
	return p.accepting(func(l net.Listener, conn net.Conn) error { return errors.Join(l.Close(), conn.Close(), p.Block()) })
}

// accepting shakes hands and hands each connection to serve, one after the other.
func (p *hostile) accepting(serve func(l net.Listener, conn net.Conn) error) error {
	l, err := listenAt("unix", socketPath())
	if err != nil {
		return err
	}
	if err := p.Handshake(1); err != nil {
		return err
	}
	for first := true; ; first = false {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(err, p.Block())
		}
		if first {
			p.did("done")
		}
		_ = serve(l, conn)
		_ = conn.Close()
	}
}

// shakeAndFlood serves, and writes to standard output all the time.
func (p *hostile) shakeAndFlood() error {
	return p.serveAttack(func(context.Context, *sdk.Call) {
		chunk := strings.Repeat("1|1|unix|/x|grpc\n", 4000)
		for range 50 {
			_, _ = p.Stdout.WriteString(chunk)
		}
		p.did("done")
	})
}
