package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/runtime"
)

// swapProgram is "swapprogram A B...": it exchanges each pair of names as fast as it
// can, from the line that it prints until it is killed.
func swapProgram() {
	pairs := os.Args[1:]
	for n := 0; ; n++ {
		for i := 0; i+1 < len(pairs); i += 2 {
			if err := unix.Renameat2(unix.AT_FDCWD, pairs[i], unix.AT_FDCWD, pairs[i+1], unix.RENAME_EXCHANGE); err != nil {
				fmt.Println("cannot:", err)
				os.Exit(1)
			}
		}
		if n == 0 {
			fmt.Println("swapping")
		}
	}
}

// startSwapping starts swapProgram and waits until it swaps.
func startSwapping(t *testing.T, pairs ...string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "swapprogram")
	put(t, name, ourselves(t))
	cmd := exec.CommandContext(t.Context(), name)
	cmd.Args = append([]string{"swapprogram"}, pairs...)
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "swapping\n" {
		t.Skipf("no two names can be exchanged here: %s", line)
	}
}

// TestAgentsChainSwapped: a directory that another process exchanges for a link, while the
// chain of the directory above it is resolved, leads no link, import or touched path out of
// the tree.
func TestAgentsChainSwapped(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	plant(t, dir, map[string]string{
		"tree/.git/HEAD": "", "tree/AGENTS.md": "top\n@./a/part.md", "tree/AGENTS.local.md": "-> a/in/AGENTS.md", "tree/b/AGENTS.md": "-> ../a/AGENTS.md",
		"tree/a/part.md": "mine", "tree/a/AGENTS.md": "mine", "tree/a/in/AGENTS.md": "mine", "tree/link": "-> ../outside",
		"outside/part.md": "SECRET", "outside/AGENTS.md": "SECRET", "outside/in/AGENTS.md": "SECRET",
		"c.yaml": "version: 1\nplugins:\n  - {name: agentsdoc, builtin: agentsdoc, config: {imports: true}}\n",
	})
	tree := filepath.Join(dir, "tree")
	startSwapping(t, filepath.Join(tree, "a"), filepath.Join(tree, "link"))
	o := chain.Default()
	o.Imports = chain.ImportLines
	read, tries := 0, 0
	// On a busy machine the other process may not run for a while.
	for began := time.Now(); tries < raceTries() || (read == 0 || read == tries) && time.Since(began) < time.Minute; tries++ {
		text := chain.Render(chain.Resolve(chain.OS{}, filepath.Join(tree, "b"), o), chain.Budget{Bytes: 1 << 16, Chars: 1 << 16}).Text
		s := lazy.Begin(0, chain.Resolve(chain.OS{}, tree, o), chain.Rendering{})
		text += s.Touch(chain.OS{}, o, []string{tree + "/a/in/x", tree + "/link/in/x"}).Reminder
		if tries%30 == 0 { // also the command, which takes far longer to start
			code, out, errs := grapnelIn(t, dir, "agents", "chain", "--config", filepath.Join(dir, "c.yaml"), "--dir", filepath.Join(tree, "b"), "--text")
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			text += out
		}
		if strings.Contains(text, "SECRET") {
			t.Fatalf("try %d: a file outside of the tree is told:\n%s", tries, text)
		}
		if strings.Contains(text, "mine") {
			read++
		}
	}
	t.Logf("%d tries, %d of which found what was swapped", tries, read)
	if read == 0 || read == tries {
		t.Errorf("%d of %d tries found what was swapped, so nothing raced", read, tries)
	}
}

// rootsConfig has the plugins that read files for a turn, and a root.
const rootsConfig = `version: 1
serve: {roots: [%s]}
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths], read: ['*']}
    config: {imports: true, trust: all}
  - name: skills
    builtin: skills
    grants: {contribute: [prompt_section, tool_bundle], sections: [skills_runtime], tools: [read_skill], see: [tool_calling, available_tools, touched_paths], read: ['*']}
`

// raceTries is how often a swapped directory is compiled and touched.
func raceTries() int { return rounds(3000, 250) }

// TestServeRootsSwapped: a directory below serve.roots that another process exchanges
// for a link, while turns are compiled in it and tools touch it, leads no plugin out of
// the roots, neither by the link nor upwards.
func TestServeRootsSwapped(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	const skill = "---\nname: s\ndescription: %s\n---\n%[1]s\n"
	outside := map[string]string{"AGENTS.md": "SECRET", "in/AGENTS.md": "SECRET", "in/deep/AGENTS.md": "SECRET"}
	inside := map[string]string{"AGENTS.md": "mine\n@./part.md", "part.md": "part", "in/AGENTS.md": "mine", "in/deep/AGENTS.md": "mine"}
	for _, at := range []string{"", "in/", "in/deep/"} {
		outside[at+".agents/skills/s/SKILL.md"] = fmt.Sprintf(skill, "SECRET")
		inside[at+".agents/skills/s/SKILL.md"] = fmt.Sprintf(skill, "mine")
	}
	outside["part.md"] = "SECRET"
	plant(t, filepath.Join(dir, "outside"), outside)
	plant(t, filepath.Join(dir, "work", "tree"), inside)
	plant(t, dir, map[string]string{".git/HEAD": "", "AGENTS.md": "SECRET", "work/link": "-> ../outside", "work/link2": "-> ../../outside/in"})
	plant(t, dir, map[string]string{"grapnel.yaml": fmt.Sprintf(rootsConfig, filepath.Join(dir, "work"))})
	tree := filepath.Join(dir, "work", "tree")
	startSwapping(t, tree, filepath.Join(dir, "work", "link"))

	read, refused, tries := 0, 0, raceTries()
	const each = 500 // a command has a minute
	// A busy machine may not swap while a few are made: then more are.
	for first, late := 0, time.Now().Add(3*time.Minute); first < tries || read*refused == 0 && time.Now().Before(late); first += each {
		s := serveIn(t, dir, "--config", filepath.Join(dir, "grapnel.yaml"))
		c := dial(t, s.target(), "")
		if first == 0 {
			c.ask(t, "workspace/create", object{"id": "w", "name": "W"})
		}
		for n := range min(each, tries) {
			switch text, ok := compileAndTouch(t, c, tree, first+n); {
			case strings.Contains(text, "SECRET"):
				t.Fatalf("try %d: a file outside of the roots is told:\n%s", first+n, text)
			case !ok:
				refused++
			case strings.Contains(text, "mine"):
				read++
			}
		}
		s.end(t, syscall.SIGTERM)
	}
	t.Logf("%d tries: %d read the tree, %d had no prompt", tries, read, refused)
	if read == 0 || refused == 0 {
		t.Errorf("%d tries: %d read the tree and %d were refused, so nothing raced", tries, read, refused)
	}
}

// compileAndTouch compiles a turn in the tree or below, every other time in a session in
// which a tool then touches paths. It returns all that the model is told; not ok means
// that there was no prompt, usually because the gateway refused the directory.
func compileAndTouch(t *testing.T, c *heard, tree string, n int) (text string, ok bool) {
	t.Helper()
	where := object{"workspace_id": "w", "thread_id": "t", "turn_id": strconv.Itoa(n), "dir": filepath.Join(tree, []string{"", "in", "in/deep"}[n%3])}
	if n%2 == 1 {
		where["session_id"] = strconv.Itoa(n / 4)
	}
	var done runtime.Compiled
	if err := c.Call(t.Context(), "turn/compile", object{"turn": where, "input": object{"user_text": "Hi", "tool_calling": true}}, &done); err != nil {
		if !strings.Contains(err.Error(), "not a directory in the gateway's roots") {
			t.Fatal(err)
		}
		return "", false
	}
	if done.Prompt == nil { // a busy machine lets the hook run out of time
		return fmt.Sprint(done.Error), false
	}
	text = done.Prompt.FullText
	if n%2 == 1 {
		var out struct{ Reminders []struct{ Text string } }
		touched := object{"phase": "tool.post_call", "context": where, "input": object{"tool": "write", "touched_paths": []string{tree + "/in/deep/x", tree + "/in/x"}}}
		_ = c.Call(t.Context(), "phase/dispatch", touched, &out) // refused, if it is a link now
		text += fmt.Sprint(out.Reminders)
	}
	return text, true
}
