package main

import (
	"context"
	_ "embed" // for the configuration
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/runtime"
)

//go:embed demo.yaml
var demoConfig string

// The files of the demo, in its directory. The place MEMORY_DSN of the configuration is the memory's.
const (
	demoConfigName = "grapnel.yaml"
	demoProject    = "project"
	demoLog        = "audit.db"
	demoForged     = "forged.db"
)

// demoResult is what a demo has shown.
type demoResult struct {
	Dir    string     `json:"dir"     jsonschema:"where everything is; the commands work until it is removed"`
	Config string     `json:"config"  jsonschema:"the configuration; the commands need it in $GRAPNEL_CONFIG"`
	TookMS float64    `json:"took_ms"`
	Steps  []demoStep `json:"steps"`
}

// demoStep is one thing that was seen.
type demoStep struct {
	Title   string `json:"title"   jsonschema:"what it is about"`
	OK      bool   `json:"ok"      jsonschema:"whether it was seen"`
	Seen    string `json:"seen"    jsonschema:"what was seen, in one line"`
	Command string `json:"command" jsonschema:"the command that shows it"`
}

type demoFlags struct {
	Open bool   `flag:"open" usage:"then serve what the demo has kept, and open the page in a browser"`
	Dir  string `flag:"dir"  usage:"empty or new {DIR} for the demo's files (default a temporary directory, which stays)"`
}

func (a *app) demo(ctx context.Context, f *demoFlags, _ []string) error {
	if err := a.runDemo(ctx, f.Dir); err != nil || !f.Open {
		return err
	}
	if _, err := io.WriteString(a.stdout, a.result()); err != nil { // before serving, which has no end
		return err
	}
	a.out.Reset()
	return a.serve(ctx, &serveFlags{Listen: "127.0.0.1:0", Persona: filepath.Join(filepath.Dir(a.Config), "home"), Open: true, ownLogLevel: true}, nil)
}

// runDemo holds the conversation of the demo, and shows what was seen.
func (a *app) runDemo(ctx context.Context, dir string) error {
	began := time.Now()
	dir, err := demoDir(dir)
	if err != nil {
		return err
	}
	a.Config, a.Store = filepath.Join(dir, demoConfigName), ""
	d := &demo{app: a, result: demoResult{Dir: dir, Config: a.Config}}
	if err := errors.Join(d.write("AGENTS.md", demoRules("Answer in English.")), d.write("service/AGENTS.md", "The service is written in Go.\n")); err != nil {
		return unable(err)
	}
	if err := d.hold(ctx); err != nil {
		return err
	}
	if err := errors.Join(d.blame(ctx), d.forge(ctx)); err != nil {
		return err
	}
	d.result.TookMS = milliseconds(time.Since(began))
	if err := a.print(d.result, func() { a.printDemo(&d.result) }); err != nil {
		return err
	}
	for _, s := range d.result.Steps {
		if !s.OK {
			return refused(fmt.Errorf("the demo did not show this: %s; the files are in %s", s.Title, dir))
		}
	}
	return nil
}

// demoDir makes the directory with its configuration. What is in one that is given stays untouched.
func demoDir(dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "grapnel-demo-")
		if err != nil {
			return "", unable(noTemp(err))
		}
		dir = made
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", unable(err)
	}
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return "", usagef("--dir %s: it is not empty; name an empty or a new directory", dir)
	}
	for _, below := range []string{".git", "service"} { // the marker of a project's root, and the working directory
		if err := os.MkdirAll(filepath.Join(dir, demoProject, below), 0o700); err != nil {
			return "", unable(err)
		}
	}
	dsn, err := json.Marshal(sqliteScheme + filepath.Join(dir, "memory.db")) // a JSON string is one in YAML, too
	if err != nil {
		return "", unable(err)
	}
	file := strings.Replace(demoConfig, "MEMORY_DSN", string(dsn), 1)
	return dir, os.WriteFile(filepath.Join(dir, demoConfigName), []byte(file), 0o600)
}

// demoRules is an AGENTS.md of usual length: a shorter prompt is not cached.
func demoRules(first string) string {
	rules := []string{"# Rules of the project", "", "- " + first}
	for i := range 70 {
		rules = append(rules, fmt.Sprintf("- Rule %d: keep functions short, name things as the glossary does, and test what you change.", i+1))
	}
	return strings.Join(rules, "\n") + "\n"
}

// demo is a demo under way.
type demo struct {
	*app

	result demoResult
	count  func(string) int
	last   string // the last request
}

// write writes a file of the project.
func (d *demo) write(name, content string) error {
	return os.WriteFile(filepath.Join(d.result.Dir, demoProject, filepath.FromSlash(name)), []byte(content), 0o600)
}

// showf adds a step, with what was seen if it was.
func (d *demo) showf(title, command string, ok bool, format string, seen ...any) {
	step := demoStep{Title: title, OK: ok, Seen: "not seen", Command: "grapnel " + command}
	if ok {
		step.Seen = text.Sanitize(fmt.Sprintf(format, seen...), 400)
	}
	d.result.Steps = append(d.result.Steps, step)
}

// shellWord quotes a path for a shell where that is needed.
func shellWord(path string) string {
	if strings.ContainsAny(path, " '\"$`\\&|;<>()*?[]#~") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// hold holds the conversation on an engine of the demo's own configuration.
func (d *demo) hold(ctx context.Context) error {
	cfg, err := config.Load(d.Config)
	if err != nil {
		return err
	}
	rec, err := d.openRecorder(ctx, cfg, origin{Path: d.Config})
	if err != nil {
		return err
	}
	opts := runtime.Options{WaitFor: runtime.WaitAll}
	if err := countTokens(&opts, demoModelName); err != nil {
		return err
	}
	d.count = opts.CountTokens
	rec.wire(&opts)
	err = d.withEngine(ctx, cfg, opts, d.converse)
	return firstOf(err, rec.close())
}

func (a *app) printDemo(r *demoResult) {
	a.println("A conversation of three turns with a model that only pretends; the plugins, the prompts and the log are real.")
	a.printf("Everything is in %s, and stays until you remove it. For the commands:\n\n     $ export GRAPNEL_CONFIG=%s\n", r.Dir, shellWord(r.Config))
	if _, err := exec.LookPath("grapnel"); err != nil {
		a.println("     $ alias grapnel='go run ./cmd/grapnel'   # in a checkout; grapnel is not in your PATH")
	}
	for i, s := range r.Steps {
		mark, colour := "✓", good
		if !s.OK {
			mark, colour = "✗", bad
		}
		a.printf("\n")
		a.paint(colour, mark)
		a.printf(" %d. ", i+1)
		a.paint(heading, s.Title+":")
		a.printf(" %s\n", s.Seen)
		a.paint(faint, "     $ "+s.Command+"\n")
	}
	a.printf("\n%d steps in %.1f s\n", len(r.Steps), r.TookMS/1000)
}
