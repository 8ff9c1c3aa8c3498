package proc

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/grapnelhq/grapnel/phases"
)

func TestStdoutPump(t *testing.T) {
	t.Parallel()

	const good = "1|1|unix|/s|grpc|"
	tests := []struct {
		name, in  string
		passed    string
		code      phases.Cause
		wantExtra int64
	}{
		{"handshake", good + "\n", good + "\n", "", 0},
		{"more after it", good + "\nabc\ndef", good + "\n", "", 7},
		{"with carriage return", good + "\r\n", good + "\r\n", "", 0},
		{"nothing", "", "", "", 0},
		{"unfinished at the end", good, good + "\n", "", 0},
		{"cut in the address", "1|1|unix|/tmp/grap", "", "", 0},
		{"cut in the transport", "1|1|unix|/s|gr", "", "", 0},
		{"cut in the version", "1|", "", "", 0},
		{"cut, and no handshake", "1|x", "", phases.CauseStartNoise, 0},
		{"noise, then handshake", "hello\n" + good + "\n", "", phases.CauseStartNoise, int64(len(good)) + 1},
		{"noise without newline", "hello", "", phases.CauseStartNoise, 0},
		{"long noise", strings.Repeat("x", 100_000), "", phases.CauseStartNoise, -1},
		{"other version", "1|2|unix|/s|grpc|\n", "", phases.CauseVersionMismatch, 0},
		{"other core", "2|1|unix|/s|grpc|\n", "", phases.CauseVersionMismatch, 0},
		{"old form without transport", "1|1|unix|/s\n", "", phases.CauseVersionMismatch, 0},
		{"table", "a|b|c|d|e\n", "", phases.CauseStartNoise, 0},
	}
	for _, tt := range tests {
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"": func(r io.Reader) io.Reader { return r }, " by bytes": iotest.OneByteReader, " end with data": iotest.DataErrReader,
		} {
			t.Run(tt.name+name, func(t *testing.T) {
				t.Parallel()

				var dst bytes.Buffer
				var code phases.Cause
				o := &stdout{onError: func(err *phases.Error) { code += err.Code }}
				o.pump(reader(strings.NewReader(tt.in)), &dst)
				if dst.String() != tt.passed || code != tt.code {
					t.Errorf("passed %q, code %q; want %q, %q", dst.String(), code, tt.passed, tt.code)
				}
				if got := o.extra.Load(); tt.wantExtra >= 0 && got != tt.wantExtra {
					t.Errorf("extra = %d, want %d", got, tt.wantExtra)
				}
			})
		}
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
		{"tcp", "127.0.0.1:1234", true},
		{"tcp", "[::1]:1234", true},
		{"tcp", "localhost:1234", false},
		{"tcp", "0.0.0.0:1234", false},
		{"tcp", "192.0.2.1:1234", false},
		{"tcp", "127.0.0.1", false},
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

func FuzzCheckHandshake(f *testing.F) {
	for _, s := range []string{"", "1|1|unix|/s|grpc|", "1|1|a|b", "hello\x1b[0m", "|||||", "99999|1|unix|x|grpc"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		err := checkHandshake(line)
		if err == nil {
			if text := strings.TrimSpace(string(line)); !strings.HasPrefix(text, "1|1|") || strings.Count(text, "|") < 4 {
				t.Fatalf("accepted %q", line)
			}
			return
		}
		if err.Code != phases.CauseStartNoise && err.Code != phases.CauseVersionMismatch {
			t.Fatalf("code %q", err.Code)
		}
		if strings.ContainsFunc(err.Message, func(r rune) bool { return r < ' ' }) {
			t.Fatalf("message %q holds a control character", err.Message)
		}
	})
}
