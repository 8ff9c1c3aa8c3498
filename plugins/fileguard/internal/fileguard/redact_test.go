package fileguard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	if f := g.Call("Read", nil, []string{"notes.txt"}, dir); f == nil || !strings.Contains(f.Reason(), ".env") {
		t.Errorf("a touched path: %v", f)
	}
}
