package proc

import (
	"strings"
	"testing"
)

func TestLastWords(t *testing.T) {
	t.Parallel()

	node := "node:internal/modules/cjs/loader:1210\nthrow err;\n^\nError: Cannot find module 'x'\nRequire stack:\n- /p/a.js\n" +
		"at Module._load (node:internal/modules/cjs/loader:1051:27)\ncode: 'MODULE_NOT_FOUND',\nrequireStack: [ '/p/a.js' ]\n}\nNode.js v20.20.2"
	tests := []struct{ name, lines, want string }{
		{"nothing", "", ""},
		{"one line", "a", "a"},
		{"no reason", "a\nb\nc\nd", "b | c | d"},
		{"node", node, "Error: Cannot find module 'x' | Require stack: | - /p/a.js"},
		{"node, with a code", "throw e\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'y'\nat a\nat b\n}\nNode.js v20", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'y' | at a | at b"},
		{"node, syntax", "/p/a.js:1\nlet x = ;\n^\nSyntaxError: Unexpected token ';'\nat a\nat b\nat c\nNode.js v20", "/p/a.js:1 | let x = ; | ^ | SyntaxError: Unexpected token ';'"},
		{"minified", "/p/a.js:1\n" + strings.Repeat("x", 4000) + "\n^\nSyntaxError: Bad\nat a", "/p/a.js:1 | " + strings.Repeat("x", 117) + "… | ^ | SyntaxError: Bad"},
		{"python", "Traceback (most recent call last):\nFile \"p.py\", line 3, in <module>\nimport nope\nModuleNotFoundError: No module named 'nope'", "File \"p.py\", line 3, in <module> | import nope | ModuleNotFoundError: No module named 'nope'"},
		{"python, of a package", "Traceback\na\nb\ngrapnel.PluginError: bad\nsys:1: a warning", "b | grapnel.PluginError: bad | sys:1: a warning"},
		{"ruby", "<internal:/usr/lib/r.rb>:136:in 'require': cannot load such file -- x (LoadError)\nfrom a\nfrom b\nfrom c\nfrom d", "<internal:/usr/lib/r.rb>:136:in 'require': cannot load such file -- x (LoadError) | from a | from b"},
		{"java", "Exception in thread \"main\" java.lang.NoClassDefFoundError: a/B\nat C.main(C.java:3)\nCaused by: java.lang.ClassNotFoundException: a.B\nat x\nat y\n... 1 more", "Caused by: java.lang.ClassNotFoundException: a.B | at x | at y"},
		{"rust", "thread 'main' panicked at src/main.rs:2:5:\nno file\nnote: run with RUST_BACKTRACE=1\nx\ny", "thread 'main' panicked at src/main.rs:2:5: | no file | note: run with RUST_BACKTRACE=1"},
		{"long ago", "TypeError: handled\n" + strings.Repeat("fine\n", traceLines) + "b\nc\nd", "b | c | d"},
		{"the word alone", "a\nNo Error: b\nc\nd\ne", "c | d | e"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var lines []string
			if tt.lines != "" {
				lines = strings.Split(tt.lines, "\n")
			}
			if got := strings.TrimPrefix(lastWords(lines), "stderr: "); got != tt.want {
				t.Errorf("lastWords = %s, want %s", got, tt.want)
			}
		})
	}
}
