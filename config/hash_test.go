package config_test

import (
	"bytes"
	"testing"

	"github.com/grapnelhq/grapnel/config"
)

const hashed = `version: 1
store: sqlite:%
manifest: {fingerprint_key: "%", chain_key: "%", keep_text: true}
plugins:
  - name: p
    command: /bin/p
    env: {set: {TOKEN: "%", OTHER: "${VARIABLE}"}}
    config: {url: "${VARIABLE}", size: 3}
`

func TestPublic(t *testing.T) {
	t.Parallel()

	public := func(text string) []byte {
		load := config.Loader{LookupEnv: func(name string) (string, bool) { return "from " + name, true }}
		cfg, err := load.Parse([]byte(text), "grapnel.yaml")
		if err != nil {
			t.Fatal(err)
		}
		b, err := cfg.Public()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	fill := func(secret string) string {
		return string(bytes.ReplaceAll([]byte(hashed), []byte("%"), []byte(secret)))
	}
	one, other := public(fill("correct horse battery")), public(fill("another secret of ours"))
	if !bytes.Equal(one, other) {
		t.Errorf("secrets make a difference:\n%s\n%s", one, other)
	}
	for _, secret := range []string{"horse", "from VARIABLE"} {
		if bytes.Contains(one, []byte(secret)) {
			t.Errorf("%q is in %s", secret, one)
		}
	}
	for _, change := range [][2]string{{"size: 3", "size: 4"}, {"keep_text: true", "keep_text: false"}, {`OTHER: "${VARIABLE}"`, `OTHER: "${ANOTHER}"`}, {"/bin/p", "/bin/q"}} {
		if changed := public(string(bytes.Replace([]byte(fill("x")), []byte(change[0]), []byte(change[1]), 1))); bytes.Equal(changed, one) {
			t.Errorf("%s makes no difference", change[1])
		}
	}
}
