package guard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/facts/guard"
	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/secret"
)

// newGuard is a guard with the default patterns.
func newGuard(tb testing.TB) *guard.Guard {
	tb.Helper()
	set, err := protect.New(protect.Defaults())
	if err != nil {
		tb.Fatal(err)
	}
	return &guard.Guard{Set: set, Home: "/repo/home", Secrets: secret.Formats()}
}

// tree is a project with protected files, links to them, and directories without any.
func tree(tb testing.TB) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	for name, text := range map[string]string{
		".git/HEAD": "", ".gitignore": ".env\n*.pem\n", ".env": "API_KEY=correct-horse-battery\nPORT=8080\n", ".env.example": "API_KEY=\n", "main.go": "package main\n",
		"environment.ts": "export {}\n", "src/a.ts": "x\n", "src/b.ts": "y\n", "docs/env.md": "see .env\n", "conf/.env.production": "DB_PASSWORD=hunter2-hunter2\n",
		"certs/server.pem": "-----BEGIN\n", "pub/id.pub": "ssh\n", "README.md": "hi\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	for link, target := range map[string]string{"notes.txt": ".env", "c": "conf", "src/up": "../.env"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, ".env"), filepath.Join(dir, "hard.txt")); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// judged calls judge for each line of a file of test data, in a tree of its own: whether it is to be denied, and the rest.
func judged(t *testing.T, file string, call func(g *guard.Guard, dir, text string) *guard.Finding) {
	t.Helper()
	g, dir := newGuard(t), tree(t)
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		verdict, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if verdict != "deny" && verdict != "allow" {
			continue
		}
		f := call(g, dir, strings.ReplaceAll(text, "$TREE", dir))
		if (f != nil) != (verdict == "deny") {
			t.Errorf("%s: got %+v", line, f)
		}
		if f != nil && (f.Reason() == "" || strings.ContainsAny(f.Reason(), "\uE000\uE001\uE002\x00\x1b")) {
			t.Errorf("%s: reason %q", line, f.Reason())
		}
	}
}

// TestCommands has ways to read a protected file with a shell, and what agents run all day.
func TestCommands(t *testing.T) {
	t.Parallel()
	judged(t, "commands.txt", func(g *guard.Guard, dir, command string) *guard.Finding {
		if plain, err := strconv.Unquote(command); err == nil && command[0] == '"' {
			command = plain
		}
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return g.Call("Bash", args, nil, dir)
	})
}

// TestCalls has calls of other tools.
func TestCalls(t *testing.T) {
	t.Parallel()
	judged(t, "calls.txt", func(g *guard.Guard, dir, call string) *guard.Finding {
		tool, args, _ := strings.Cut(call, " ")
		if !json.Valid([]byte(args)) {
			t.Fatalf("%s is not JSON", args)
		}
		return g.Call(tool, json.RawMessage(args), nil, dir)
	})
}

func TestNotJSON(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`not json`, `{"a":`, `{} {}`, `{"a" "b"}`, `[1,]`, strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if f := newGuard(t).Call("Read", json.RawMessage(args), nil, ""); f == nil || !strings.Contains(f.Reason(), "cannot be judged") {
			t.Errorf("%s: %v", args, f)
		}
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), tree(t)
	for prompt, deny := range map[string]bool{
		"what is in @.env?": true, "@.env": true, "see (@./conf/.env.production)": true, `look at @"conf/.env.production" now`: true, "@~/.ssh/id_rsa#L1-3": true, "@notes.txt": true, "@hard.txt, please": true,
		"@conf": true, "@conf/": true, "@.ENV": true, "@" + dir + "/.env": true, "a\n@.env\nb": true, "#file:.env": true, "@file\\ x/.env": true, "@.env,@main.go": true, "@.env and": true,
		// Claude Code 2.1.332 attaches the file of each of these: all that Unicode calls a space ends a name or stands before it, and so does punctuation of other scripts.
		"@.env\u00a0x": true, "\u2028@.env": true, "@.env\u3000x": true, "\u3000@.env": true, "@.env\u2003x": true, "、@.env": true, "。@.env": true, "@.env。": true, "@.env）": true, "@.env！": true, "@.env“": true, "@.env是": true,
		"explain .env": false, "@main.go": false, "ann@x.env": false, "mail a@.env.example": false, "@.env.example": false, "@src/a.ts": false, "@docs": false, "@": false, "": false, "@agent-x do it": false, "@pub/": false,
	} {
		if f := g.Prompt(strings.ReplaceAll(prompt, "\\n", "\n"), dir); (f != nil) != deny {
			t.Errorf("%q: %v, want denied: %t", prompt, f, deny)
		}
	}
}

// FuzzCall: whatever the arguments are, the answer comes, and a reason can be shown.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{"cat .env", "cat .e*", "$(((((", "{a,{b,c}}{1..99999}", "for i in ${a:-$(x)}; do :; done <<E\n$x\nE\n", "a=$a$b; b=$b$a; cat $a", "\x00\xff*", "[[ a =~ (b ]]", "@(a|!(b))", "bash -c 'bash -c \"bash -c x\"'"} {
		f.Add(seed)
	}
	g := newGuard(f)
	dir := tree(f)
	f.Fuzz(func(t *testing.T, command string) {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Skip("not a text")
		}
		if found := g.Call("Bash", args, nil, dir); found != nil && found.Reason() == "" {
			t.Error("no reason")
		}
		g.Prompt(command, dir)
		g.Result("Bash", args, nil, command, false, dir)
		if found := g.Call("Read", json.RawMessage(command), nil, dir); found != nil && found.Reason() == "" {
			t.Error("no reason")
		}
	})
}

// TestBounds: commands made to cost much are refused, or judged, at once.
func TestBounds(t *testing.T) {
	t.Parallel()
	g := newGuard(t)
	for name, command := range map[string]string{
		"long": strings.Repeat("a ", 40_000), "deep": strings.Repeat("(", 60_000), "ifs": strings.Repeat("if ", 20_000), "substituted": strings.Repeat("$(", 30_000), "quoted": strings.Repeat("\"$(", 15_000),
		"braces": strings.Repeat("{a,b}", 10_000), "nested": strings.Repeat("{a,", 10_000) + strings.Repeat("}", 10_000), "stars": "cat " + strings.Repeat("*", 60_000), "doubling": "a=xx;" + strings.Repeat("a=$a$a;", 5000),
		"values": "a=x{1..30};" + strings.Repeat("a=$a$a;", 5000), "words": strings.Repeat("ls *;", 10_000), "whiles": strings.Repeat("while ", 10_000), "arithmetic": "$((" + strings.Repeat("(", 50_000), "not": strings.Repeat("! ", 30_000), "functions": strings.Repeat("f(){ ", 12_000),
		"directories": strings.Repeat("cd a;", 12_000), "pipes": strings.Repeat("a|", 30_000) + "a", "loops": strings.Repeat("ls|while a;do ", 4000) + strings.Repeat("done;", 4000), "branches": strings.Repeat("ls|if a;then ", 4000) + strings.Repeat("fi;", 4000),
		"finds": strings.Repeat("find . -exec ", 5000), "xargs": "echo x | " + strings.Repeat("xargs ", 10_000), "items": "echo " + strings.Repeat("a ", 15_000) + "| xargs -I{} grep -r {}" + strings.Repeat("{}", 15_000),
		"definitions": numbered("f%(){ a; };", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tail := range []string{"", "; cat .env"} {
				args, err := json.Marshal(map[string]string{"command": command + tail})
				if err != nil {
					t.Fatal(err)
				}
				if f := g.Call("Bash", args, nil, ""); tail != "" && f == nil {
					t.Error("allowed")
				}
			}
		})
	}
}

// numbered repeats a text, each time with another number in the place of %.
func numbered(text string, times int) string {
	var b strings.Builder
	for i := range times {
		b.WriteString(strings.ReplaceAll(text, "%", strconv.Itoa(i)))
	}
	return b.String()
}

// TestManyFiles: what cannot be looked through is denied, with what to do instead.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), t.TempDir()
	for i := range 25_000 {
		if err := os.Symlink("x", filepath.Join(dir, "f"+strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{"grep -r x .": "more files in . than can be checked", "cat *": "matches more files", "tar c .": "more files"} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if f := g.Call("Bash", args, nil, dir); f == nil || !strings.Contains(f.Reason(), want) {
			t.Errorf("%s: %v", command, f)
		}
	}
	if f := g.Call("Bash", json.RawMessage(`{"command":"rg x"}`), nil, dir); f != nil { // its lines have the names
		t.Errorf("rg: %s", f.Reason())
	}
}

// TestManyNames: a link behind many names of files is found, or the call is denied.
func TestManyNames(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), tree(t)
	for command, deny := range map[string]bool{
		"cat" + strings.Repeat(" main.go", 299) + " notes.txt": true, "cat" + strings.Repeat(" main.go", 400) + " notes.txt": true, "cat" + strings.Repeat(" nowhere", 1000) + " notes.txt": true,
		"cat" + strings.Repeat(" main.go", 200): false, "cat" + strings.Repeat(" nowhere", 1000): false,
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if f := g.Call("Bash", args, nil, dir); (f != nil) != deny {
			t.Errorf("%.20s, %d bytes: %v, want denied: %t", command, len(command), f, deny)
		}
	}
	var b strings.Builder
	for i := range 4000 {
		b.WriteString("@x" + strconv.Itoa(i) + " ")
	}
	names := b.String()
	for prompt, deny := range map[string]bool{names: false, names + "@.env": true, names + "@notes.txt": true, names + strings.ReplaceAll(names, "@x", "@y") + strings.ReplaceAll(names, "@x", "@z"): true, strings.Repeat("@Override ", 20_000): false} {
		if f := g.Prompt(prompt, dir); (f != nil) != deny {
			t.Errorf("a prompt of %d bytes: %v, want denied: %t", len(prompt), f, deny)
		}
	}
}

// fakePAT has the form of a token, and is none.
var fakePAT = "ghp_" + "0a1B2c3D4e5F6g7H8i9J0kAlBmCnDoEpFqGr"

// TestResult: what a protected file holds is gone, and the rest is there.
func TestResult(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), tree(t)
	g.Values = true
	tests := []struct{ name, tool, args, result, gone, kept string }{
		{"a call that would be denied", "Bash", `{"command":"cat .env"}`, "A=hush-hush", "hush-hush", "removed by the file guard"},
		{"a path in the arguments", "Read", `{"file_path":".env"}`, `{"type":"text","file":{"filePath":".env","content":"A=hush-hush"}}`, "hush-hush", "removed"},
		{"a path in the result", "fetch", `{"id":7}`, `{"type":"text","file":{"filePath":"/x/.env","content":"A=hush-hush","numLines":1}}`, "hush-hush", `"filePath":"/x/.env"`},
		{"a uri in the result", "mcp__fs__get", `{"id":7}`, `{"contents":[{"uri":"file:///x/.env","mimeType":"text/plain","text":"A=hush-hush"}]}`, "hush-hush", "text/plain"},
		{"one of two files", "mcp__fs__get", `{"id":7}`, `[{"path":"a.ts","content":"keep me"},{"path":".env","content":"A=hush-hush"}]`, "hush-hush", "keep me"},
		{"lines of grep", "mcp__x__y", `{}`, "a.ts:1:keep me\n.env:3:A=hush-hush\nb.ts-4-keep too\nconf/.env.production-7-B=hush-hush\n", "hush-hush", "keep too"},
		{"lines of grep without numbers", "mcp__x__y", `{}`, "a.ts:keep me\n./.env:A=hush-hush\n", "hush-hush", "keep me"},
		{"headings of rg", "mcp__x__y", `{}`, "a.ts\n1:keep me\n\n.env\n3:A=hush-hush\n4-B=hush-hush\n\nb.ts\n9:keep too\n", "hush-hush", "keep too"},
		{"headings of head", "mcp__x__y", `{}`, "==> .env <==\nA=hush-hush\n\n==> a.ts <==\nkeep me\n", "hush-hush", "keep me"},
		{"headings of gemini", "mcp__x__y", `{}`, "--- /x/.env ---\n\nA=hush-hush\n\n--- /x/a.ts ---\nkeep me\n", "hush-hush", "keep me"},
		{"a diff", "mcp__x__y", `{}`, "diff --git a/.env b/.env\n+A=hush-hush\ndiff --git a/a.ts b/a.ts\n+keep me\n", "hush-hush", "keep me"},
		{"a tag", "mcp__x__y", `{}`, "<file path=\"conf/.env.production\">\nA=hush-hush\n</file>\n", "hush-hush", "conf/.env.production"},
		{"a link in the result", "mcp__x__y", `{}`, "==> notes.txt <==\nA=hush-hush\n", "hush-hush", "notes.txt"},
		{"a token", "Bash", `{"command":"python3 x.py"}`, "the token is " + fakePAT + " today", fakePAT, "today"},
		{"a token inside JSON", "mcp__x__y", `{}`, `{"a":{"b":["` + fakePAT + `"]},"n":12345678901234567890}`, fakePAT, "12345678901234567890"},
		{"a private key", "Bash", `{"command":"python3 x.py"}`, "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("b3BlbnNzaC1rZXktdjEAAAAA\n", 6) + "-----END OPENSSH PRIVATE KEY-----\nkeep me", "b3BlbnNzaC1rZXktdjEAAAAA", "keep me"},
		{"a value of .env", "Bash", `{"command":"python -c \"print(open('.e'+'nv').read())\""}`, "API_KEY=correct-horse-battery\nPORT=8080\n", "correct-horse-battery", "PORT=8080"},
		{"a value of .env inside JSON", "mcp__x__y", `{}`, `{"k":"x correct-horse-battery y"}`, "correct-horse-battery", `"k":"x `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, changed := g.Result(tt.tool, json.RawMessage(tt.args), nil, tt.result, false, dir)
			if !changed || strings.Contains(got, tt.gone) || !strings.Contains(got, tt.kept) {
				t.Errorf("changed: %t\n%s", changed, got)
			}
			if json.Valid([]byte(tt.result)) && tt.name != "a path in the arguments" && !json.Valid([]byte(got)) {
				t.Errorf("not JSON any more: %s", got)
			}
		})
	}
}

// TestResultStays: what only names protected files stays to the byte.
func TestResultStays(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), tree(t)
	g.Values = true
	source, err := os.ReadFile("guard.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range []string{
		"", ".env\n.env.example\nmain.go\n", `["/x/.env","/x/a.ts"]`, `{"filenames":[".env","a.ts"],"numFiles":2}`, `[{"path":".env","type":"file","size":3}]`, "Copy .env.example to .env, then run make.\n",
		"a.ts:1:process.env.KEY\nb.ts:2:.env is read first\n", "ls: cannot access '.env': No such file or directory\n", "12:30 .env\n", "{not json", `{"a": 1.0,  "b":"<x>"}`, "key: value\npassword: test\n", "https://x.example/.env: 404\n", string(source),
		"commit 0123456789abcdef0123456789abcdef01234567\n    Document .env\n", "-rw------- 1 ann users 40 Nov 28 .env\n", `{"file":{"filePath":"/x/.env.example","content":"KEY=correct"}}`, "?? .env\n M a.ts\n",
	} {
		if got, changed := g.Result("mcp__x__y", json.RawMessage(`{}`), nil, result, false, dir); changed || got != result {
			t.Errorf("%q became %q", result, got)
		}
	}
}

// TestResultCut: of a result that was not seen whole, the rest goes.
func TestResultCut(t *testing.T) {
	t.Parallel()
	got, changed := newGuard(t).Result("Bash", json.RawMessage(`{"command":"ls"}`), nil, "a\n", true, "")
	if !changed || !strings.HasPrefix(got, "a\n") || !strings.Contains(got, "the rest of the result") {
		t.Errorf("%t %q", changed, got)
	}
}

// TestLinkOutside: links are followed, in arguments and in what the host says is touched.
func TestLinkOutside(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), tree(t)
	if err := os.Symlink(filepath.Join(dir, "conf"), filepath.Join(dir, "plain")); err != nil {
		t.Fatal(err)
	}
	if f := g.Call("Bash", json.RawMessage(`{"command":"cat plain/.env.production; cat plain/*"}`), nil, dir); f == nil {
		t.Error("allowed")
	}
	for link, target := range map[string]string{"chain0": "notes.txt", "loop": "loop", "deep": "deep/deep", "here": "there/x", "there": "here/x"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		if err := os.Symlink("chain"+strconv.Itoa(i), filepath.Join(dir, "chain"+strconv.Itoa(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if f := g.Call("Bash", json.RawMessage(`{"command":"cat loop deep here/there chain60 chain30"}`), nil, dir); f == nil {
		t.Error("allowed behind many links")
	}
	if f := g.Call("Read", nil, []string{"notes.txt"}, dir); f == nil || !strings.Contains(f.Reason(), ".env") {
		t.Errorf("a touched path: %v", f)
	}
}

// TestWalks has commands that read whole directories, in one whose only secrets are conf/.env and the links to it.
func TestWalks(t *testing.T) {
	t.Parallel()
	g, dir := newGuard(t), t.TempDir()
	for name, text := range map[string]string{"conf/.env": "SECRET=1\n", "main.go": "package main\n", "sub/x.sh": "", "web/a.ts": "", "d/x": ""} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"sub/up": "../conf/.env", "web/c": "../conf", "web/self": ".", "d/top": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join("testdata", "walks.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		verdict, command, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if verdict != "deny" && verdict != "allow" {
			continue
		}
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if f := g.Call("Bash", args, nil, dir); (f != nil) != (verdict == "deny") {
			t.Errorf("%s: got %+v", line, f)
		}
	}
}
