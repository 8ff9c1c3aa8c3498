package wire

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// stdioMessage is a plugin.StdioData.
func stdioMessage(channel uint64, data string) []byte {
	m := protowire.AppendVarint(protowire.AppendTag(nil, stdioChannel, protowire.VarintType), channel)
	return protowire.AppendString(protowire.AppendTag(m, stdioData, protowire.BytesType), data)
}

// FuzzParseStdio: no message panics, and data is part of it.
func FuzzParseStdio(f *testing.F) {
	f.Add(stdioMessage(stdioStdout, strings.Repeat("x", 1000)))
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, message []byte) {
		if _, data := parseStdio(message); !bytes.Contains(message, data) {
			t.Fatalf("data %q of %q", data, message)
		}
	})
}

// TestDecodePanics: a panic while a frame is read is an error of that frame.
func TestDecodePanics(t *testing.T) {
	t.Parallel()
	err := decode(&frames{}, &incoming{envelope: envelope{payload: []byte{8, 1}}}, ruleClean, &none{}, func(*form, *none) { panic("oh") })
	if err == nil || !strings.Contains(err.Error(), "panic: oh") {
		t.Errorf("error %v", err)
	}
}
