package facts_test

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/internal/facts"
)

func BenchmarkOf(b *testing.B) {
	dir := b.TempDir()
	for name, args := range map[string]string{"bash": `{"command":"go test ./internal/facts/... -run TestX 2>&1 | tail -20 # 60"}`, "read": `{"file_path":"facts.go"}`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				facts.Of(name, json.RawMessage(args), nil, dir, "/home/u")
			}
		})
	}
}
