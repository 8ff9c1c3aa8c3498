package textrule

import (
	"strings"
	"testing"
)

// BenchmarkEscape is a text in which little or much has to be looked at twice.
func BenchmarkEscape(b *testing.B) {
	for name, piece := range map[string]string{"prose": "Some words of instruction, as people write.\n", "tags": "<b>[x]</b>\\ \u200b<AGENTS>\n"} {
		text := strings.Repeat(piece, 64<<10/len(piece))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Escape(text)
			}
		})
	}
}
