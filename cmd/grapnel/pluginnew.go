package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
)

// scaffold holds the templates of plugin new: those beside the languages' directories are for all of them. A file
// NAME@KIND.EXT.tmpl is for one kind of plugin and becomes NAME.EXT. Actions stand in {% and %}.
//
//go:embed scaffold
var scaffold embed.FS

type newFlags struct {
	Lang string `flag:"lang"     usage:"the {LANGUAGE}: go, ts or python"                                            words:"go|ts|python"`
	Kind string `default:"guard" flag:"kind"                                                                         usage:"the {KIND} of plugin: guard, section, tool or observer" words:"guard|section|tool|observer"`
	SDK  string `flag:"sdk"      usage:"use the kit of a checkout of Grapnel in {DIR}, instead of the published one"`
}

type newPlugin struct {
	Plugin string    `json:"plugin"`
	Lang   string    `json:"lang"`
	Kind   string    `json:"kind"`
	Dir    string    `json:"dir"    jsonschema:"the directory that was made"`
	Files  []string  `json:"files"  jsonschema:"the files in it"`
	Next   []newStep `json:"next"   jsonschema:"what to do next, in that directory"`
}

type newStep struct {
	Command string `json:"command"`
	Says    string `json:"says"`
}

func (a *app) pluginNew(_ context.Context, f *newFlags, args []string) error {
	name := args[0]
	switch {
	case !phases.ValidPluginName(name):
		return usagef("%.80q cannot name a plugin: use letters, digits, _ and -", name)
	case name == phases.OwnerBuiltin || name == phases.OwnerHost:
		return usagef("%q cannot name a plugin: it is the name of an owner that is not a plugin", name)
	case f.Lang == "":
		return usagef("plugin new needs a language: --lang go, ts or python")
	}
	data, err := newProject(name, f)
	if err != nil {
		return err
	}
	files, err := data.render()
	if err != nil {
		return unable(err)
	}
	result := newPlugin{Plugin: name, Lang: f.Lang, Kind: f.Kind, Dir: name, Files: []string{}, Next: data.Steps}
	if result.Files, err = writeProject(name, files); err != nil {
		return err
	}
	if link := data.kitLink(); link != "" {
		if err := os.Symlink(link, filepath.Join(name, "grapnel")); err != nil {
			return unable(err)
		}
	}
	if f.SDK == "" && strings.HasSuffix(version, "-dev") {
		reportf(a.err, "grapnel: version %s is not a release, and its kits may not be published: --sdk DIR uses those of a checkout\n", version)
	}
	return a.print(result, func() {
		a.printf("made the directory %s:\n", name)
		for _, file := range result.Files {
			a.println(" ", file)
		}
		a.printf("\nnext:\n  cd %s\n", name)
		for _, step := range result.Next {
			a.printf("  %s%s\n", step.Command, words.If(step.Says != "", "  # "+step.Says))
		}
	})
}

// project is what the templates of one plugin are filled with.
type project struct {
	Name, Lang, Kind string
	ID               string // the id of its section or bundle
	Doc              string // what it does, as the end of a sentence
	SDK              string // the absolute path of a checkout; empty for the published kit
	Source, Program  string // what an author edits, and what a host starts
	Path             string // the PATH that its first line needs to find the interpreter; empty if the system's will do
	Confined         bool   // whether this machine has the sandbox T1
	Read             []string
	Steps            []newStep
}

func newProject(name string, f *newFlags) (*project, error) {
	p := &project{
		Name: name, Lang: f.Lang, Kind: f.Kind,
		ID:       strings.ToLower(strings.ReplaceAll(name, "-", "_")),
		Doc:      kindDoc(f.Kind),
		Confined: sandbox.Probe().Reach(sandbox.T1, sandbox.Policy{}, "") == nil,
	}
	if f.SDK != "" {
		dir, err := filepath.Abs(f.SDK)
		if err != nil {
			return nil, usagef("--sdk %s: %w", f.SDK, err)
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(kitDirectory(f.Lang)))); err != nil {
			return nil, usagef("--sdk %s: is not a checkout of Grapnel: %w", f.SDK, unwrapPath(err))
		}
		p.SDK = filepath.ToSlash(dir)
	}
	switch f.Lang {
	case "go":
		p.Source, p.Program = "main.go", "./"+name
	case "ts":
		p.Source, p.Program = "src/plugin.ts", "./dist/plugin.js"
		p.interpreted("node", "sdks/typescript")
	case "python":
		p.Source, p.Program = "plugin.py", "./plugin.py"
		p.interpreted("python3", "sdks/python/src")
	}
	p.Steps = p.steps()
	return p, nil
}

func kindDoc(kind string) string {
	switch kind {
	case "guard":
		return "denies the shell command rm -rf"
	case "section":
		return "adds a section to the prompt"
	case "tool":
		return "has a tool, word_count"
	}
	return "counts the tool calls of each turn for the audit trail"
}

// kitDirectory is where a checkout has the kit, from its root.
func kitDirectory(lang string) string {
	return map[string]string{"go": "sdk/serve", "ts": "sdks/typescript/package.json", "python": "sdks/python/src/grapnel"}[lang]
}

// kitLink is where the link to the kit of a checkout leads; empty if the language needs none.
func (p *project) kitLink() string {
	if p.SDK == "" || p.Lang != "python" {
		return ""
	}
	return filepath.FromSlash(p.SDK + "/" + kitDirectory(p.Lang))
}

// interpreted sets what the sandbox must let through: what lies beside a script, the kit, and an interpreter that is
// not the system's.
func (p *project) interpreted(interpreter, kit string) {
	p.Read = []string{"."}
	if p.SDK != "" {
		p.Read = append(p.Read, p.SDK+"/"+kit)
	}
	system := []string{"/usr/bin", "/bin"}
	found := lookProgram(interpreter)
	dir := filepath.Dir(found)
	if found == "" || slices.Contains(system, dir) {
		return
	}
	p.Path = strings.Join(append([]string{dir}, system...), string(filepath.ListSeparator))
	system = append(system, "/usr/local/bin")
	if real, err := filepath.EvalSymlinks(found); err == nil && !slices.Contains(system, filepath.Dir(real)) {
		p.Read = append(p.Read, filepath.Dir(filepath.Dir(real)))
	}
	if !slices.Contains(system, dir) && !slices.Contains(p.Read, filepath.Dir(dir)) {
		p.Read = append(p.Read, dir)
	}
}

// lookProgram finds a program in PATH that is not a script, as the shims of version managers are.
func lookProgram(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err != nil || !filepath.IsAbs(dir) || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if head, err := readHead(file); err == nil && head != "#!" {
			return file
		}
	}
	return ""
}

func readHead(file string) (head string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	var two [2]byte
	_, err = f.Read(two[:])
	return string(two[:]), err
}

func (p *project) steps() []newStep {
	var steps []newStep
	add := func(command, says string) { steps = append(steps, newStep{command, says}) }
	check := "grapnel plugin check --transport stdio -- " + p.Program
	switch p.Lang {
	case "go":
		add("go mod tidy && go build", "once; go build after each change")
		add("go test", "its tests")
		check = "grapnel plugin check -- " + p.Program
	case "ts":
		if _, err := os.Stat(filepath.Join(p.SDK, "sdks", "typescript", "dist")); p.SDK != "" && err != nil {
			add(fmt.Sprintf("(cd '%s/sdks/typescript' && npm ci && npm run build)", p.SDK), "the kit, once")
		}
		add("npm install", "once")
		add("npm test", "builds it and runs its tests")
	case "python":
		if p.SDK == "" {
			add("python3 -m pip install --target . -r requirements.txt", "the kit, beside the plugin")
		}
		add("python3 -m unittest", "its tests")
	}
	add(p.try(), "")
	add(check, "would a host find fault with it?")
	return steps
}

// try is the command that shows the plugin at work.
func (p *project) try() string {
	run := "grapnel plugin run " + p.Name + " --config grapnel.yaml"
	switch p.Kind {
	case "guard":
		return `echo '{"tool": "shell", "arguments": {"command": "rm -rf /"}}' | ` + run + " --input -"
	case "tool":
		return "grapnel plugin call " + p.Name + ` word_count --config grapnel.yaml --args '{"text": "two words"}'`
	case "observer":
		return `echo '{"tool_events": [{"tool": "shell"}]}' | ` + run + " --wait --input -"
	}
	return run
}

// render fills in the templates. Names of files are slash-separated; what comes out empty is omitted.
func (p *project) render() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(scaffold, "scaffold", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		target, ok := p.target(strings.TrimPrefix(name, "scaffold/"))
		if !ok {
			return nil
		}
		text, err := fs.ReadFile(scaffold, name)
		if err != nil {
			return err
		}
		t, err := template.New(name).Delims("{%", "%}").Funcs(template.FuncMap{"lower": strings.ToLower, "quote": quoted}).Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, p); err != nil {
			return err
		}
		if out.Len() > 0 {
			files[target] = out.Bytes()
		}
		return nil
	})
	return files, err
}

// quoted is a text as JSON, which YAML, go.mod and package.json read alike.
func quoted(s string) (string, error) {
	data, err := json.Marshal(s)
	return string(data), err
}

// target is the name of the file that a template becomes, if it is for this project.
func (p *project) target(name string) (string, bool) {
	lang, rest, inside := strings.Cut(name, "/")
	switch {
	case !inside:
		rest = lang
	case lang != p.Lang:
		return "", false
	}
	dir, base := path.Split(strings.TrimSuffix(rest, ".tmpl"))
	if before, after, only := strings.Cut(base, "@"); only {
		kind, ext, _ := strings.Cut(after, ".")
		if kind != p.Kind {
			return "", false
		}
		base = before + "." + ext
	}
	if base == "gitignore" {
		base = ".gitignore"
	}
	return dir + base, true
}

// writeProject writes the files into a new or empty directory, and returns their names.
func writeProject(dir string, files map[string][]byte) ([]string, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, usagef("the directory %s is not empty: choose another NAME, or remove it", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, usagef("%s is in the way: %w", dir, unwrapPath(err))
	}
	names := []string{}
	for name := range files {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	for _, name := range names {
		file, mode := filepath.Join(dir, filepath.FromSlash(name)), fs.FileMode(0o644)
		if bytes.HasPrefix(files[name], []byte("#!")) {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as a directory of source has it
			return nil, unable(err)
		}
		if err := os.WriteFile(file, files[name], mode); err != nil {
			return nil, unable(err)
		}
	}
	return names, nil
}
