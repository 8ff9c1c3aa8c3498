package proc

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	maxHandshake = 4 << 10 // maxHandshake bounds the first line, certificate included
	noiseShown   = 200     // how much of anything else is quoted
)

// stdout hands over the first line of a plugin's standard output and discards the rest, so that the plugin never blocks
// on a write.
type stdout struct {
	first  chan firstLine // buffered, for the one that is sent
	head   []byte
	passed bool
}

type firstLine struct {
	text []byte
	cut  bool // the output ended before the line did
}

func newStdout() *stdout { return &stdout{first: make(chan firstLine, 1)} }

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

func (o *stdout) take(p []byte) {
	if o.passed {
		return
	}
	o.head = append(o.head, p...)
	line, _, found := bytes.Cut(o.head, []byte{'\n'})
	if !found && len(o.head) <= maxHandshake {
		return
	}
	o.pass(firstLine{text: slices.Clip(line)})
}

func (o *stdout) pass(line firstLine) {
	o.passed, o.head = true, nil
	o.first <- line
}

// handshake is go-plugin's checked first line, CORE|VERSION|NETWORK|ADDRESS|PROTOCOL[|CERTIFICATE].
type handshake struct {
	network, address string
	certificate      *x509.Certificate // nil unless the host asked for one
}

// parseHandshake accepts what go-plugin's servers write for the environment that the host sets, and nothing else.
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

// unfinished reports whether the output ended within a possible handshake: the plugin was slow, or crashed.
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

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// checkAddress keeps a plugin from making its host send data to another machine.
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

const certificateHost = "localhost"

// certificateLife is generous: the certificate is shown once, when the connection is made.
const certificateLife = 24 * time.Hour

// newCertificate makes the host's self-signed certificate for one start; the plugin trusts it as a root.
func newCertificate() (own tls.Certificate, encoded string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return own, "", err
	}
	now := time.Now() // the plugin's clock is the system's
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: certificateHost},
		DNSNames:              []string{certificateHost},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(certificateLife),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return own, "", err
	}
	encoded = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, encoded, nil
}
