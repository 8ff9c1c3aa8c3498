package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolve(t *testing.T) {
	t.Parallel()

	tests := []struct {
		text  string
		kind  nodeKind
		value string
	}{
		{"", nullNode, ""},
		{"null", nullNode, ""},
		{"nULL", textNode, "nULL"},
		{"true", boolNode, "true"},
		{"FALSE", boolNode, "false"},
		{"yes", textNode, "yes"},
		{"0", numberNode, "0"},
		{"+12", numberNode, "12"},
		{"-", textNode, "-"},
		{"1.10", numberNode, "1.10"},
		{"-.5", numberNode, "-0.5"},
		{"1.", numberNode, "1.0"},
		{".", textNode, "."},
		{"1.e-03", numberNode, "1.0e-03"},
		{"1e", textNode, "1e"},
		{"1e3x", textNode, "1e3x"},
		{"0x1F", numberNode, "31"},
		{"0x", textNode, "0x"},
		{"0o8", textNode, "0o8"},
		{"0xffffffffffffffffff", numberNode, "4722366482869645213695"},
		{"123456789012345678901234567890", numberNode, "123456789012345678901234567890"},
		{"1_000", textNode, "1_000"},
		{"2024-05-06", textNode, "2024-05-06"},
		{"10s", textNode, "10s"},
	}
	for _, tt := range tests {
		kind, value, problem := resolve(tt.text)
		if kind != tt.kind || value != tt.value || problem != "" {
			t.Errorf("resolve(%q) = %v %q (%s), want %v %q", tt.text, kind, value, problem, tt.kind, tt.value)
		}
	}
	for _, text := range []string{".inf", "-.INF", ".NaN", "00", "-01", "01.5", "1e1000", strings.Repeat("1", maxNumber+1)} {
		if _, _, problem := resolve(text); problem == "" {
			t.Errorf("resolve(%.20q) has no problem", text)
		}
	}
}

func TestSizeText(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]Size{
		"0B": 0, "512B": 512, "4KiB": 4096, "256MiB": 256 << 20, "1GiB": 1 << 30, "1KB": 1000, "2MB": 2e6, "3GB": 3e9, "8589934591GiB": 8589934591 << 30,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "KiB", "-1B", "+1B", "1.5MiB", "1 MiB", "1M", "1mib", "8589934592GiB", "9223372036854775808B", "0x1B"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}

// TestConfigKeepsNumbers pins that a plugin gets the digits of the file.
func TestConfigKeepsNumbers(t *testing.T) {
	t.Parallel()

	c := parse(t, `version: 1
plugins:
  - name: p
    config:
      big: 12345678901234567890123
      float: 1.10
      exp: 1e3
      hex: 0xFF
      date: 2024-05-06
      time: 2024-05-06T07:08:09Z
      yes: yes
      none:
      empty: {}
      list: []
      block: |
        a
        b
      1: number
      "q\"": "\u00e9\n"
`)
	want := `{"1":"number","big":12345678901234567890123,"block":"a\nb\n","date":"2024-05-06","empty":{},"exp":1e3,"float":1.10,"hex":255,"list":[],"none":null,"q\"":"é\n","time":"2024-05-06T07:08:09Z","yes":"yes"}`
	if diff := cmp.Diff(string(c.Plugins[0].Config), want); diff != "" {
		t.Errorf("config (-got +want):\n%s", diff)
	}
}
