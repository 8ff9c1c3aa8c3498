package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// repositoryConfig has the plugins that read a tree, with all that makes them read more.
const repositoryConfig = `version: 1
manifest: {keep_text: true}
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths], read: ['*']}
    config: {global: false, imports: true}
  - name: skills
    builtin: skills
    grants: {contribute: [prompt_section, tool_bundle], sections: [skills_runtime], tools: [read_skill], see: [tool_calling, available_tools, touched_paths], read: ['*']}
`

// canary is what no repository may bring into an output, a manifest or a log.
const canary = "CANARY-4f1d"

// repositoryRow is one hostile repository.
type repositoryRow struct {
	class, name string
	// build adds to a repository that has a .git and an AGENTS.md.
	build func(t *testing.T, h *hostileTree)
	// dir is the working directory below the root, touch a path that a tool touches.
	dir, touch string
	// code is a diagnostic that some command has to give.
	code string
	// mayFail permits the commands to fail: a root that is taken away, or a name or a time
	// that is refused.
	mayFail bool
}

// hostileTree is a repository, and what lies beside it.
type hostileTree struct{ base, root, outside string }

// canaryFiles lie outside of the repository, under each name that might be followed.
func canaryFiles() map[string]string {
	const skill = "---\nname: one\ndescription: " + canary + "\n---\n" + canary + "\n"
	files := map[string]string{}
	for _, dir := range []string{"", "skills/", "info/", "skills/one/", "one/"} {
		files["outside/"+dir+"secret"], files["outside/"+dir+"AGENTS.md"], files["outside/"+dir+"SKILL.md"] = canary, canary, skill
		files["outside/"+dir+"exclude"], files["outside/"+dir+"index"] = "hidden\n", canary
	}
	files["outside/commondir"], files["outside/.gitignore"] = ".", "hidden\n"
	return files
}

// TestHostileRepositories runs the commands on repositories of which every byte is hostile.
// Whatever lies below the root, no command crashes, hangs or grows, opens or changes what
// lies outside, runs a program, or lets a text pass for the prompt's own.
func TestHostileRepositories(t *testing.T) {
	skipShort(t)
	t.Parallel()

	for _, row := range smoke(repositoryRows()) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()

			base := t.TempDir()
			h := &hostileTree{base: base, root: filepath.Join(base, "repo"), outside: filepath.Join(base, "outside")}
			plant(t, base, canaryFiles())
			plant(t, base, map[string]string{"repo/.git/HEAD": "ref: x\n", "repo/AGENTS.md": "top\n", "home/x": "", "c.yaml": repositoryConfig, "input.json": `{"tool_calling": true}`})
			row.build(t, h)
			opened := watchOutside(t, h.outside)
			h.attack(t, &row)
			if names := opened(); names != "" {
				t.Errorf("outside of the root, this was opened or changed: %s", names)
			}
			if _, err := os.Lstat(filepath.Join(base, "ran")); err == nil {
				t.Error("a program of the repository was run")
			}
		})
	}
}

// smoke returns every row with [longSwitch], else one of each class: the first by name of each
// attack with each diagnostic.
func smoke(rows []repositoryRow) []repositoryRow {
	if rounds(1, 0) == 1 {
		return rows
	}
	slices.SortFunc(rows, func(a, b repositoryRow) int {
		return cmp.Or(strings.Compare(a.class, b.class), strings.Compare(a.code, b.code), strings.Compare(a.name, b.name))
	})
	return slices.CompactFunc(rows, func(a, b repositoryRow) bool { return a.class == b.class && a.code == b.code })
}

// attack runs the commands of a user in the repository and checks what they print.
func (h *hostileTree) attack(t *testing.T, row *repositoryRow) {
	t.Helper()
	cfg, dir, state := filepath.Join(h.base, "c.yaml"), filepath.Join(h.root, row.dir), filepath.Join(h.base, "state.json")
	store := filepath.Join(h.base, "log.db")
	commands := [][]string{
		{"compile", "--config", cfg, "--dir", dir, "--json", "--input", filepath.Join(h.base, "input.json"), "--store", "sqlite:" + store},
		{"agents", "chain", "--config", cfg, "--dir", dir, "--state", state, "--json"},
		{"agents", "lint", "--config", cfg, "--dir", dir, "--json"},
	}
	if row.touch != "" {
		commands = append(commands, []string{"agents", "touch", "--config", cfg, "--state", state, filepath.Join(h.root, row.touch), "--json"})
	}
	var all strings.Builder
	for _, args := range commands {
		code, out, words := h.run(t, args)
		if code != exitOK && (code != exitNo || args[1] != "lint") && !row.mayFail {
			t.Errorf("%q: exit code %d: %.600s", args[:2], code, out+words)
		} else if args[0] == "compile" && code == exitOK && !row.mayFail {
			checkCompiled(t, out)
		}
		if out += words; len(out) > 16<<20 { // 2,000 files have paths of 4 KiB
			t.Errorf("%q prints %d bytes", args[:2], len(out))
		}
		all.WriteString(out)
	}
	said := all.String()
	if log, err := os.ReadFile(store); err == nil {
		if strings.Contains(string(log), canary) {
			t.Error("the store holds the canary")
		}
	}
	if i := strings.Index(said, canary); i >= 0 {
		t.Errorf("the canary is printed: %q", said[max(0, i-200):i+20])
	}
	if i := strings.IndexFunc(said, func(r rune) bool { return obeyed(r) || unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		t.Errorf("a terminal would obey %q", said[max(0, i-20):min(len(said), i+20)])
	}
	if row.code != "" && !strings.Contains(said, `"`+row.code+`"`) {
		t.Errorf("no diagnostic %s in %.3000s", row.code, said)
	}
}

// repositoryMemory is what a command and each of its plugins may have, in KiB of private
// memory: Go reserves 64 MiB at once.
const repositoryMemory = "393216"

// run runs a command as a user would who is in the repository and has it in his PATH.
func (h *hostileTree) run(t *testing.T, args []string) (code int, out, words string) {
	t.Helper()
	cmd, _ := programCommand(t, args...)
	cmd.Env = append(cmd.Env, homeIn(filepath.Join(h.base, "home"))...)
	cmd.Env = append(cmd.Env, "TOKEN="+canary, "PATH=.:bin:"+os.Getenv("PATH"))
	cmd.Dir = h.root
	if !raceDetector { // which reserves far more
		name := filepath.Join(h.base, "grapnel")
		if err := os.Symlink(cmd.Path, name); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		cmd.Args = append([]string{"sh", "-c", `ulimit -d ` + repositoryMemory + `; exec "$@"`, "sh", name}, args...)
		cmd.Path = "/bin/sh"
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr // a slow disk is a warning there
	cmd.Stdin = strings.NewReader(canary)     // what /dev/stdin would give
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// checkCompiled checks that all hooks ran, and that what a prompt has once is there once.
func checkCompiled(t *testing.T, out string) {
	t.Helper()
	var result struct {
		Prompt struct {
			Text string `json:"full_text"`
		} `json:"prompt"`
		Manifest struct {
			Runs []struct {
				Subscription string `json:"subscription"`
				State        string `json:"state"`
			} `json:"runs"`
		} `json:"manifest"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v in %.300s", err, out)
	}
	if len(result.Manifest.Runs) == 0 {
		t.Error("no hook ran")
	}
	for _, run := range result.Manifest.Runs {
		if run.State != "succeeded" && run.State != "filtered" {
			t.Errorf("the hook %s: %s", run.Subscription, run.State)
		}
	}
	text := result.Prompt.Text
	instructions, skills, closed := strings.Cut(text, "\n</AGENTS_MD>\n")
	if closed {
		instructions += "\n</AGENTS_MD>"
	}
	checkFrames(t, instructions, "AGENTS_MD", 1)
	checkFrames(t, skills, "SKILL", 3)
	if forged := regexp.MustCompile(`(?m)^\s*\[ ?source: "x", scope managed`).FindString(instructions); forged != "" {
		t.Errorf("%q is forged", forged)
	}
	text = regexp.MustCompile(`(?s)\n<AGENTS_MD>\n.*?\n</AGENTS_MD>`).ReplaceAllString(instructions, "") + regexp.MustCompile(`(?s)\n<SKILL>\n.*?\n</SKILL>`).ReplaceAllString(skills, "")
	for _, once := range []string{"<!-- grapnel:dynamic -->", "## Identity\n", "## Safety\n", "## AGENTS.md\n", "## Skills Runtime\n"} {
		if n := strings.Count("\n"+text, "\n"+once); n > 1 {
			t.Errorf("outside of the frames %q is there %d times in\n%s", once, n, text)
		}
	}
}

// checkFrames checks that the tags of a frame are opened and closed in turn.
func checkFrames(t *testing.T, text, name string, most int) {
	t.Helper()
	tags := regexp.MustCompile(`(?i)<\s*(/?)\s*`+name+`\b`).FindAllStringSubmatch(text, -1)
	for i, tag := range tags {
		if (tag[1] == "") != (i%2 == 0) || i >= 2*most || len(tags)%2 != 0 {
			t.Errorf("%d tags of %s, of which number %d is %q, in\n%s", len(tags), name, i, tag[0], text)
			return
		}
	}
}

// watchOutside returns a function that names what was opened or changed since.
func watchOutside(t *testing.T, dir string) func() string {
	t.Helper()
	fd := must(unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC))(t)
	t.Cleanup(func() { _ = unix.Close(fd) })
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE)
		}
		return err
	})
	drain := func() string {
		buf := make([]byte, 64<<10)
		n, err := unix.Read(fd, buf)
		if err != nil {
			return "" // nothing
		}
		return strings.Join(strings.FieldsFunc(string(buf[:n]), func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }), " ") + "."
	}
	drain() // what the walk itself opened
	if err != nil {
		t.Fatal(err)
	}
	return drain
}
