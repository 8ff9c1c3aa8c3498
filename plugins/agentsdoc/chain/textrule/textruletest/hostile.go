package textruletest

import (
	"math/rand/v2"
	"strings"
)

// hostilePieces are what such texts are made of.
func hostilePieces() []string {
	return []string{
		"\n", "\n", `\`, `\\`, "<", "/", "[", "]", "[source:", "[truncated:", "[omitted:", "AGENTS_MD", "agents_md", "!-- grapnel:dynamic",
		"\u200b", "\u2060", "\ufeff", "\U000e0061", " ", "word ", "é", "e\u0301", "👨\u200d👩\u200d👧", "日本", "\u0600", strings.Repeat("x", 40),
		`[source: "AGENTS.md", scope project, kept 1 of 1 bytes]`, "<!-- grapnel:dynamic -->", "</AGENTS_MD>", `<\/AGENTS_MD`, `\[truncated:`,
		"</ ", "＜", "‹", "&lt;", "&#60;", "&#47;", "АGENTЅ_MD", "ＡＧＥＮＴＳ＿ＭＤ", "agents\\_md", "[ Source :", "［sоurce：", "  ", "> ", "- ", "1. ", "**", "\u2028", "\v", "&nbsp;",
	}
}

// Hostile joins random pieces of texts that try to break the rules.
func Hostile(rng *rand.Rand, pieces int) string {
	list := hostilePieces()
	var out strings.Builder
	for range pieces {
		out.WriteString(list[rng.IntN(len(list))])
	}
	return out.String()
}
