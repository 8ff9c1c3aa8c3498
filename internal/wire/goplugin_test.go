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

func TestParseStdio(t *testing.T) {
	t.Parallel()
	good := stdioMessage(stdioStderr, "words")
	tests := map[string]struct {
		message []byte
		channel uint64
		data    string
	}{
		"good":             {good, stdioStderr, "words"},
		"an unknown field": {append(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 5), good...), stdioStderr, "words"},
		"no data":          {stdioMessage(stdioStdout, ""), stdioStdout, ""},
		"empty":            {nil, 0, ""},
		"cut":              {good[:len(good)-1], 0, ""},
		"no protobuf":      {[]byte{0xff, 0xff}, 0, ""},
		"wrong types":      {protowire.AppendString(protowire.AppendTag(nil, stdioChannel, protowire.BytesType), "x"), 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channel, data := parseStdio(tt.message)
			if channel != tt.channel || string(data) != tt.data {
				t.Errorf("channel %d, data %q; want %d, %q", channel, data, tt.channel, tt.data)
			}
		})
	}
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
