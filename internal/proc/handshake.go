package proc

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	// maxHandshake bounds the line that a plugin begins with, its certificate
	// included.
	maxHandshake = 4 << 10
	// noiseShown is how much of something else is quoted.
	noiseShown = 200
)

// stdout reads a plugin's standard output: the first line is handed over;
// everything after it is counted and thrown away, so that the plugin never
// waits for a reader.
type stdout struct {
	first  chan firstLine // has room for the one that is sent
	extra  atomic.Int64
	head   []byte
	passed bool
}

// firstLine is what a plugin's standard output begins with.
type firstLine struct {
	text []byte
	cut  bool // the output ended before the line did
}

func newStdout() *stdout { return &stdout{first: make(chan firstLine, 1)} }

// Write counts output that reaches us over the connection. It implements
// io.Writer and never fails.
func (o *stdout) Write(p []byte) (int, error) {
	o.extra.Add(int64(len(p)))
	return len(p), nil
}

// pump reads src until its end.
func (o *stdout) pump(src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		o.take(buf[:n])
		if err != nil {
			break
		}
	}
	if !o.passed && len(o.head) > 0 {
		o.pass(firstLine{text: o.head, cut: true})
	}
}

// take looks for the first line, and counts what follows it.
func (o *stdout) take(p []byte) {
	if o.passed {
		o.extra.Add(int64(len(p)))
		return
	}
	o.head = append(o.head, p...)
	line, rest, found := bytes.Cut(o.head, []byte{'\n'})
	if !found && len(o.head) <= maxHandshake {
		return
	}
	o.extra.Add(int64(len(rest)))
	o.pass(firstLine{text: slices.Clip(line)})
}

func (o *stdout) pass(line firstLine) {
	o.passed, o.head = true, nil
	o.first <- line
}

// handshake is go-plugin's first line, CORE|VERSION|NETWORK|ADDRESS|PROTOCOL or
// CORE|VERSION|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE, once it has been checked.
type handshake struct {
	network, address string
	// certificate is what the plugin's server will prove that it is; nil if no
	// certificate was asked for.
	certificate *x509.Certificate
}

// parseHandshake reads the first line of a plugin from which a certificate was
// asked for, or was not. It takes what go-plugin's servers write in answer to
// the environment that the host sets, and nothing else.
func parseHandshake(line firstLine, secure bool) (handshake, *phases.Error) {
	text := strings.TrimSpace(string(line.text))
	fields := strings.Split(text, "|")
	if len(line.text) > maxHandshake || len(fields) < 4 || !isNumber(fields[0]) || !isNumber(fields[1]) || strings.ContainsFunc(text, unwanted) {
		shown := clean(string(line.text[:min(len(line.text), noiseShown)]), noiseShown)
		return handshake{}, &phases.Error{
			Code: phases.CauseStartNoise, Message: "plugin wrote to its standard output before the handshake; logs belong on standard error",
			Detail: fmt.Sprintf("it wrote %q", shown),
		}
	}
	protocol := "netrpc" // of plugins that do not say
	if len(fields) > 4 {
		protocol = fields[4]
	}
	want := []string{strconv.Itoa(wire.CoreVersion), strconv.Itoa(wire.ProtocolVersion), wire.Transport}
	if got := []string{fields[0], fields[1], protocol}; !slices.Equal(got, want) {
		err := phases.Errorf(phases.CauseVersionMismatch, "plugin speaks another handshake, protocol or transport than this host: %q", want)
		err.Detail = fmt.Sprintf("it speaks %q", got)
		return handshake{}, err
	}
	h := handshake{network: fields[2], address: fields[3]}
	if err := checkAddress(h.network, h.address); err != nil {
		return handshake{}, err
	}
	if len(fields) > 6 {
		return handshake{}, phases.Errorf(phases.CauseVersionMismatch,
			"plugin's handshake has %d fields, and this host takes 6 at most: it did not ask for multiplexing, which is the seventh", len(fields))
	}
	var err *phases.Error
	h.certificate, err = parseCertificate(strings.Join(fields[5:], ""), secure)
	return h, err
}

// parseCertificate reads the certificate of a handshake, "" if there is none.
func parseCertificate(text string, secure bool) (*x509.Certificate, *phases.Error) {
	switch {
	case !secure && text == "":
		return nil, nil
	case !secure:
		return nil, phases.Errorf(phases.CauseVersionMismatch,
			"plugin's handshake holds a certificate, and this host did not ask for one; set tls: true, or build the plugin with a current go-plugin")
	case text == "":
		return nil, phases.Errorf(phases.CauseVersionMismatch,
			"plugin's handshake holds no certificate, and tls: true asks for one; build the plugin with a go-plugin that knows AutoMTLS, or remove tls")
	}
	der, err := base64.RawStdEncoding.Strict().DecodeString(text)
	var certificate *x509.Certificate
	if err == nil {
		certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, &phases.Error{
			Code: phases.CauseVersionMismatch, Message: "the certificate in the plugin's handshake cannot be read",
			Detail: clean(err.Error(), noiseShown), Err: err,
		}
	}
	return certificate, nil
}

// String is the line as go-plugin writes it.
func (h handshake) String() string {
	var certificate string
	if h.certificate != nil {
		certificate = base64.RawStdEncoding.EncodeToString(h.certificate.Raw)
	}
	return fmt.Sprintf("%d|%d|%s|%s|%s|%s", wire.CoreVersion, wire.ProtocolVersion, h.network, h.address, wire.Transport, certificate)
}

// unfinished reports whether a line could have become a handshake if the output
// had not ended: its plugin was too slow, or has crashed.
func (l firstLine) unfinished() bool {
	if !l.cut {
		return false
	}
	parts := strings.Split(string(l.text), "|")
	for i, part := range parts[:min(2, len(parts))] {
		if !isNumber(part) && (part != "" || i < len(parts)-1) {
			return false
		}
	}
	return true
}

// isNumber reports whether s is a short decimal number.
func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// checkAddress refuses an address on another machine: what a host tells a
// plugin must not leave the machine because the plugin says so.
func checkAddress(network, addr string) *phases.Error {
	switch network {
	case "unix":
		abstract := strings.HasPrefix(addr, "@") && len(addr) > 1
		if (abstract || filepath.IsAbs(addr)) && (maxSocketPath == 0 || len(addr) <= maxSocketPath) {
			return nil
		}
	case "tcp":
		ap, err := netip.ParseAddrPort(addr)
		if err == nil && ap.Addr().IsLoopback() && ap.Addr().Zone() == "" && ap.Port() != 0 && ap.String() == addr {
			return nil
		}
	}
	return &phases.Error{
		Code: phases.CauseVersionMismatch, Message: "plugin does not listen on a local socket or a loopback address; this host speaks with no others",
		Detail: fmt.Sprintf("it listens on %q %q", clean(network, 20), clean(addr, noiseShown)),
	}
}
