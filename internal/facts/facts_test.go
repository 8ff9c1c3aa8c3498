package facts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/facts"
)

func BenchmarkOf(b *testing.B) {
	dir := b.TempDir()
	script := strings.Repeat("(cd sub && go build -o out ./cmd/x | tee build.log)\nx=$(git rev-parse HEAD)\nfor f in a b; do sed -i \"s/$f/$x/\" \"$f.go\"; done\n", 31) // 4 KB
	for _, call := range []struct{ name, tool, args string }{
		{"read", "Read", `{"file_path":"facts.go"}`},
		{"bash", "Bash", `{"command":"go test ./internal/facts/... -run TestX 2>&1 | tail -20 # 60"}`},
		{"script", "Bash", string(bash(b, script))},
	} {
		b.Run(call.name, func(b *testing.B) {
			for b.Loop() {
				facts.Of(call.tool, json.RawMessage(call.args), nil, dir, "/home/u")
			}
		})
	}
}
