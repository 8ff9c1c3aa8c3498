package docstest

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the real output into the documents")

// mention is "grapnel" with the words behind it, in code.
var mention = regexp.MustCompile("(?m)(?:^|[`$|;(]|cmd/)\\s*grapnel ([a-z][^`|;)\n]*)")

// unknown says what docs/CLI.md, which is generated, does not have of the words behind "grapnel".
func unknown(reference, line string) string {
	path := "| `grapnel"
	for word := range strings.FieldsSeq(line) {
		next := path + " " + word
		switch {
		case strings.Contains(reference, next+" ") || strings.Contains(reference, next+"`"):
			path = next
		case word == "--" || strings.HasPrefix(word, "#"):
			return ""
		case regexp.MustCompile("^--[a-z-]+$").MatchString(word) && !regexp.MustCompile(word+`\b`).MatchString(reference+" --help --version"):
			return "there is no flag " + word
		case path == "| `grapnel" && regexp.MustCompile("^[a-z]+,?$").MatchString(word):
			return "there is no command " + word
		}
	}
	return ""
}

// TestCommandLines looks up every command line that a document mentions: its words and its flags.
func TestCommandLines(t *testing.T) {
	t.Parallel()

	reference, found := text(t, "docs/CLI.md"), 0
	for _, d := range documents(t) {
		for _, m := range mention.FindAllStringSubmatch(d.text, -1) {
			found++
			if problem := unknown(reference, m[1]); problem != "" {
				t.Errorf("%s: grapnel %s: %s", d.name, m[1], problem)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d command lines: the search does not work", found)
	}
}

// console is one command of a console block with the output below it.
type console struct {
	command, output string
}

// consoles splits a console block into its commands.
func consoles(b block) []console {
	var out []console
	for line := range strings.Lines(b.text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			out = append(out, console{command: strings.TrimSpace(command)})
		} else if len(out) > 0 {
			out[len(out)-1].output += line
		}
	}
	return out
}

// TestConsole runs the commands in the documents that are a walk through the
// command line, in order, in the folder that the document describes, and compares
// what they print. Numbers and hashes may differ; a line "…" stands for any lines.
func TestConsole(t *testing.T) {
	t.Parallel()

	if runtime.GOOS != "linux" {
		t.Skip("the documents show Linux")
	}
	for _, name := range []string{"docs/BACKTEST.md", "docs/CLI.md", "docs/AUDIT.md", "docs/MEMORY.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := document{name, text(t, name)}
			w := &walk{dir: consoleFolder(t, doc), doc: doc}
			w.rewrite(t)
		})
	}
}

// walk is a document whose commands are run, in a folder of its own.
type walk struct {
	dir string
	doc document
	// url is the gateway that they call; empty for none.
	url string
}

// rewrite runs the commands. With -update it writes what they print into the document.
func (w *walk) rewrite(t *testing.T) {
	t.Helper()
	rewritten := w.try(t)
	if *update {
		writeFile(t, filepath.Join(root(t), filepath.FromSlash(w.doc.name)), rewritten)
	}
}

// try runs the commands and returns the document with what they print.
func (w *walk) try(t *testing.T) string {
	t.Helper()
	out := w.doc.text
	for _, b := range blocks(w.doc) {
		rewritten := b.text
		switch b.lang {
		case "websocket":
			if said := w.converse(t, b); normal(said) != normal(b.text) {
				rewritten = said
			}
		case "console":
			rewritten = w.console(t, b)
		default:
			continue
		}
		out = strings.Replace(out, b.text, rewritten, 1)
	}
	return out
}

// console runs the commands of a block, and returns it with what they print.
func (w *walk) console(t *testing.T, b block) string {
	t.Helper()
	rewritten := b.text
	for _, c := range consoles(b) {
		if tool := missingTool(c.command); tool != "" {
			t.Logf("%s:%d: not tried, for there is no %s here: %s", w.doc.name, b.line, tool, c.command)
			continue
		}
		got := runConsole(t, w.dir, c.command, "URL="+w.url)
		if !matches(c.output, got) {
			t.Errorf("%s:%d: $ %s\nprints\n%s\nand the document says\n%s", w.doc.name, b.line, c.command, got, c.output)
			rewritten = strings.Replace(rewritten, "$ "+c.command+"\n"+c.output, "$ "+c.command+"\n"+got, 1)
		}
	}
	return rewritten
}

// missingTool names the program that a command needs and this machine lacks, of
// those that not every machine has; empty if there is none.
func missingTool(command string) string {
	for word := range strings.FieldsSeq(command) {
		if !slices.Contains([]string{"sqlite3", "python3", "openssl", "curl"}, word) {
			continue
		}
		if _, err := exec.LookPath(word); err != nil {
			return word
		}
	}
	return ""
}

// consoleFolder makes the folder that a document works in: its configuration, the
// files of its tree, and its programs and scripts, which begin with their name.
func consoleFolder(t *testing.T, doc document) string {
	t.Helper()
	dir := t.TempDir()
	for _, b := range blocks(doc) {
		if b.lang == "yaml" {
			writeFile(t, filepath.Join(dir, "grapnel.yaml"), b.text)
			break
		}
	}
	for _, b := range blocks(doc) {
		if name, ok := strings.CutPrefix(b.text, "# "); ok && (b.lang == "python" || b.lang == "sh") {
			writeFile(t, filepath.Join(dir, strings.Fields(name)[0]), b.text)
		}
	}
	if doc.name == "docs/BACKTEST.md" {
		copyTranscripts(t, filepath.Join(dir, "home"), dir)
	}
	writeFile(t, filepath.Join(dir, ".git", "HEAD"), "")
	writeFile(t, filepath.Join(dir, "AGENTS.md"), "Answer in whole sentences.\n")
	writeFile(t, filepath.Join(dir, "service", "AGENTS.md"), "Name the service.\n")
	return dir
}

// copyTranscripts copies those that real agents have written into a home, as if it had been yesterday in a directory.
func copyTranscripts(t *testing.T, home, dir string) {
	t.Helper()
	adapted := strings.NewReplacer("2026-11-29", time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), "/ada/src/app", dir)
	from := filepath.Join(root(t), "internal", "agents", "testdata", "home")
	for _, agent := range []string{".claude", ".codex"} {
		err := filepath.WalkDir(filepath.Join(from, agent), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			writeFile(t, home+strings.TrimPrefix(path, from), adapted.Replace(string(data)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runConsole runs one command as a person would, and returns both its outputs.
func runConsole(t *testing.T, dir, command string, env ...string) string {
	t.Helper()
	program, err := grapnel()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(consoleEnv(program, dir), env...)
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(?m)^grapnel: still starting plugins: .*\n`).ReplaceAllString(string(out), "") // on a busy machine
	return strings.ReplaceAll(said, dir, "/repo")
}

// consoleEnv is the environment of a document's commands.
func consoleEnv(program, dir string) []string {
	return []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TZ=UTC"}
}

// matches compares output with the document's.
func matches(want, got string) bool {
	parts := strings.Split(normal(want), "\n…\n")
	got = normal(got)
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return first == got
	}
	if !strings.HasPrefix(got, first) || !strings.HasSuffix(got, last) {
		return false
	}
	for _, part := range parts {
		_, rest, found := strings.Cut(got, part)
		if !found {
			return false
		}
		got = rest
	}
	return true
}

// normal takes out what differs between two runs: numbers, hashes, ids and the
// widths of columns.
func normal(s string) string {
	s = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b`).ReplaceAllString(s, "#")
	s = regexp.MustCompile(`[0-9][0-9.,]*`).ReplaceAllString(s, "#")
	s = regexp.MustCompile(`[ ─]+`).ReplaceAllString(s, " ")
	return "\n" + strings.TrimRight(s, "\n") + "\n"
}
