package compiler

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// seventeen is an input with 17 sections of so many bytes each.
func seventeen(size int) Input {
	body := func(name string) string {
		line := "This line of " + name + " has <tags>, `code` and a few ordinary words.\n"
		return strings.TrimSpace(strings.Repeat(line, size/len(line)+1)[:size])
	}
	in := Input{
		Host: HostTexts{
			Identity: body("identity"), Safety: body("safety"), SoulCore: body("soul"), IdentityCore: body("core"), UserPersona: body("user"),
			ToolRecoveryPolicy: body("policy"), TaskOrchestration: body("tasks"), RecoveryContinuation: body("recovery"),
			RetryInstruction: body("retry"), DynamicContext: body("context"),
		},
		Facts: Facts{Date: "2026-02-03", TimeZone: "UTC", OS: "linux"},
	}
	add := func(id string, stability phases.Stability, placement phases.Placement) {
		content := body(id)
		in.Sections = append(in.Sections, phases.MergedSection{
			SectionID: id, Title: strings.ToUpper(id), Stability: stability, Placement: placement, Owner: "p", Content: content, OriginalChars: len(content),
		})
	}
	add("rules", stable, "")
	add("memory_recall", dynamic, "")
	add("agents_md", dynamic, "")
	add("skills_runtime", dynamic, "")
	add("extra", dynamic, phases.PlacementSystemMessage)
	add("more", dynamic, phases.PlacementUserMessage)
	return in
}

// BenchmarkCompile17x64KiB compiles 17 sections with 64 KiB in all, and makes their manifest.
func BenchmarkCompile17x64KiB(b *testing.B) {
	in := seventeen(64 << 10 / 16) // the facts are short
	out := mustCompile(b, in)
	if len(out.Sections) != 17 || len(out.Omitted) != 0 {
		b.Fatalf("%d sections, omitted: %v", len(out.Sections), out.Omitted)
	}
	total := len(out.Prompt.FullText) + len(out.Prompt.SystemMessages[0].Text) + len(out.Prompt.UserMessages[0].Text)
	b.ReportAllocs()
	b.SetBytes(int64(total))
	for b.Loop() {
		again, err := Compile(in)
		if err != nil {
			b.Fatal(err)
		}
		if m := again.Manifest(); len(m.Sections) != 17 {
			b.Fatal("sections are missing")
		}
	}
}
