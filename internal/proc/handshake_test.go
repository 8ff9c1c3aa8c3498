package proc

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

func TestFirstLine(t *testing.T) {
	t.Parallel()

	const good = "1|1|unix|/s|grpc|"
	tests := []struct {
		name, in   string
		want       string // the handshake
		code       phases.Cause
		unfinished bool
	}{
		{"handshake", good + "\n", good, "", false},
		{"without an empty certificate", "1|1|unix|/s|grpc\n", good, "", false},
		{"more after it", good + "\nabc\ndef", good, "", false},
		{"with carriage return", good + "\r\n", good, "", false},
		{"unfinished at the end", good, good, "", true},
		{"cut in the address", "1|1|unix|/tmp/grap", "", phases.CauseVersionMismatch, true},
		{"cut in the version", "1|", "", phases.CauseStartNoise, true},
		{"noise, then handshake", "hello\n" + good + "\n", "", phases.CauseStartNoise, false},
		{"noise without newline", "hello", "", phases.CauseStartNoise, false},
		{"long handshake", "1|1|unix|/s|grpc|" + strings.Repeat("A", 100_000) + "\n", "", phases.CauseStartNoise, false},
		{"other version", "1|2|unix|/s|grpc|\n", "", phases.CauseVersionMismatch, false},
		{"old form without transport", "1|1|unix|/s\n", "", phases.CauseVersionMismatch, false},
		{"NUL", "1|1|unix|/s\x00t|grpc|\n", "", phases.CauseStartNoise, false},
		{"certificate that nobody asked for", "1|1|unix|/s|grpc|" + strings.Repeat("A", 60) + "\n", "", phases.CauseVersionMismatch, false},
		{"multiplexing", "1|1|unix|/s|grpc||true\n", "", phases.CauseVersionMismatch, false},
		{"too many fields", "1|1|unix|/s|grpc||||\n", "", phases.CauseVersionMismatch, false},
	}
	for _, tt := range tests {
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"": func(r io.Reader) io.Reader { return r }, " by bytes": iotest.OneByteReader, " end with data": iotest.DataErrReader,
		} {
			t.Run(tt.name+name, func(t *testing.T) {
				t.Parallel()

				o := newStdout()
				o.pump(reader(strings.NewReader(tt.in)))
				line := <-o.first
				h, err := parseHandshake(line, false)
				switch {
				case tt.code == "" && (err != nil || h.String() != tt.want):
					t.Errorf("handshake %q, error %v; want %q", h, err, tt.want)
				case tt.code != "" && (err == nil || err.Code != tt.code):
					t.Errorf("error %v, want code %q", err, tt.code)
				}
				if got := line.unfinished(); got != tt.unfinished {
					t.Errorf("unfinished = %v, want %v", got, tt.unfinished)
				}
			})
		}
	}
}

// TestHandshakeCertificates: a certificate is there if one was asked for, and
// only then, in the one way in which go-plugin writes it.
func TestHandshakeCertificates(t *testing.T) {
	t.Parallel()

	own, _, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	good := base64.RawStdEncoding.EncodeToString(own.Certificate[0])
	const begin = "1|1|unix|/s|grpc|"
	tests := []struct {
		name, line string
		secure     bool
		want       string // in the error
	}{
		{"asked for", begin + good, true, ""},
		{"not asked for", begin + good, false, "did not ask for one"},
		{"none", begin, true, "holds no certificate"},
		{"no field for it", strings.TrimSuffix(begin, "|"), true, "holds no certificate"},
		{"no base64", begin + strings.Repeat("!", 60), true, "cannot be read"},
		{"padded", begin + base64.StdEncoding.EncodeToString(append(own.Certificate[0], 0)), true, "cannot be read"},
		{"no certificate", begin + strings.Repeat("A", 60), true, "cannot be read"},
		{"cut", begin + good[:len(good)/2], true, "cannot be read"},
		{"two", begin + good + good, true, "cannot be read"},
		{"huge", begin + strings.Repeat(good, 20), true, "before the handshake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h, err := parseHandshake(firstLine{text: []byte(tt.line)}, tt.secure)
			switch {
			case tt.want == "" && (err != nil || h.String() != tt.line):
				t.Errorf("handshake %q, error %v", h, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()

	tests := []struct {
		network, addr string
		ok            bool
	}{
		{"unix", "/tmp/s", true},
		{"unix", "@abstract", true},
		{"unix", "@", false},
		{"unix", "s", false},
		{"unix", "", false},
		{"unix", "/" + strings.Repeat("s", 200), false},
		{"tcp", "127.0.0.1:1234", true},
		{"tcp", "[::1]:1234", true},
		{"tcp", "localhost:1234", false},
		{"tcp", "0.0.0.0:1234", false},
		{"tcp", "192.0.2.1:1234", false},
		{"tcp", "127.0.0.1", false},
		{"tcp", "127.0.0.1:0", false},
		{"tcp", "127.0.0.1:080", false},
		{"tcp", "127.0.0.1:70000", false},
		{"tcp", "[::1%lo]:80", false},
		{"tcp", "[0::1]:80", false},
		{"udp", "127.0.0.1:1", false},
		{"", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.network+" "+tt.addr, func(t *testing.T) {
			t.Parallel()

			if err := checkAddress(tt.network, tt.addr); (err == nil) != tt.ok {
				t.Errorf("checkAddress = %v, want ok: %v", err, tt.ok)
			}
		})
	}
}

// FuzzHandshakeLine: no line panics, what is accepted is what was asked for, and
// reads the same when it is written again.
func FuzzHandshakeLine(f *testing.F) {
	own, _, err := newCertificate()
	if err != nil {
		f.Fatal(err)
	}
	certificate := base64.RawStdEncoding.EncodeToString(own.Certificate[0])
	for _, s := range []string{
		"", "1|1|unix|/s|grpc|", "1|1|unix|@s|grpc", "1|1|tcp|127.0.0.1:80|grpc|", "1|1|tcp|[::1]:80|grpc|" + certificate,
		"1|1|unix|/s|grpc|" + certificate, "1|1|unix|/s|grpc||true", "1|1|a|b", "hello\x1b[0m", "|||||", "99999|1|unix|x|grpc",
	} {
		f.Add([]byte(s), true, false)
		f.Add([]byte(s), false, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, secure, cut bool) {
		line := firstLine{text, cut}
		line.unfinished()
		h, err := parseHandshake(line, secure)
		if err != nil {
			if err.Code != phases.CauseStartNoise && err.Code != phases.CauseVersionMismatch {
				t.Fatalf("code %q", err.Code)
			}
			if strings.ContainsFunc(err.Message+err.Detail, unwanted) {
				t.Fatalf("error %q holds a control character", phases.Whole(err))
			}
			return
		}
		if (h.certificate != nil) != secure {
			t.Fatalf("accepted %q: certificate %v, asked for: %v", text, h.certificate != nil, secure)
		}
		if got := strings.TrimSpace(string(text)); got != h.String() && got+"|" != h.String() {
			t.Fatalf("accepted %q, which is %q", text, h)
		}
		if again, err := parseHandshake(firstLine{text: []byte(h.String())}, secure); err != nil || again.String() != h.String() {
			t.Fatalf("%q is read as %q, %v", h, again, err)
		}
	})
}

// String is the line as go-plugin writes it.
func (h handshake) String() string {
	var certificate string
	if h.certificate != nil {
		certificate = base64.RawStdEncoding.EncodeToString(h.certificate.Raw)
	}
	return fmt.Sprintf("%d|%d|%s|%s|%s|%s", wire.CoreVersion, wire.ProtocolVersion, h.network, h.address, wire.Transport, certificate)
}
