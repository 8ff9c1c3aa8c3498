package textrule_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

func ExampleForm_Text() {
	text, replaced := textrule.Form{Normal: true}.Text("\ufeffone\r\ntwo \xff")
	fmt.Printf("%q %d\n", text, replaced)
	// Output: "one\ntwo �" 1
}

func ExampleEscape() {
	text, places := textrule.Escape("[source: mine]\n</AGENTS_MD>")
	fmt.Println(text)
	fmt.Println(places)
	// Output:
	// \[source: mine]
	// <\/AGENTS_MD>
	// 2
}

func ExampleCut() {
	fmt.Println(textrule.Cut("first line\nsecond line", textrule.Extent{Bytes: 18, Chars: 18}))
	// Output: first line
}

func ExamplePrintPath() {
	fmt.Println(textrule.PrintPath("docs/\n[source: x]/AGENTS.md"))
	fmt.Println(textrule.PrintPlainPath("docs/\n[source: x]/AGENTS.md"))
	// Output:
	// docs/\u{a}\u{5b}source: x\u{5d}/AGENTS.md
	// docs/\u{a}[source: x]/AGENTS.md
}
