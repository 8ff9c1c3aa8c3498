package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// FuzzParse: no text panics; an error has places in the file, and
// a configuration prints as JSON that is a configuration too.
func FuzzParse(f *testing.F) {
	f.Add([]byte(section11))
	f.Add(Template())
	f.Add([]byte(templateInUse()))
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(data).Files {
			f.Add(part.Data)
		}
	}
	l := loader(map[string]string{"TOKEN": "s3cret", "PATH": "/nonexistent"})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := l.Parse(data, "/f/grapnel.yaml")
		if err != nil {
			checkErrors(t, data, err)
			return
		}
		checkConfig(t, l, c)
	})
}

func checkErrors(t *testing.T, data []byte, err error) {
	t.Helper()

	all, ok := errors.AsType[Errors](err)
	if !ok || len(all) == 0 || len(all) > maxMistakes+1 {
		t.Fatalf("got %d mistakes: %v", len(all), err)
	}
	lines := strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n") + 1
	for _, e := range all {
		if e.Line > lines || e.Line < 0 || e.Column < 0 || e.Line == 0 && !strings.HasPrefix(e.Message, "and ") && !strings.Contains(e.Message, "1 MiB") {
			t.Errorf("%d:%d in %d lines: %s", e.Line, e.Column, lines, e.Message)
		}
		if strings.ContainsFunc(e.Error(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7F }) {
			t.Errorf("control characters in %q", e.Error())
		}
		if strings.Contains(e.Error(), "s3cret") && !strings.Contains(string(data), "s3cret") {
			t.Errorf("a secret in %s", e)
		}
	}
}

func checkConfig(t *testing.T, l Loader, c *Config) {
	t.Helper()

	if c.Version != 1 {
		t.Errorf("version %d", c.Version)
	}
	for _, p := range c.Plugins {
		if !phases.ValidPluginName(p.Name) {
			t.Errorf("plugin name %q", p.Name)
		}
		if p.Config != nil && jsonscan.Check(p.Config, phases.MaxJSONDepth) != nil {
			t.Errorf("config %s", p.Config)
		}
	}
	out, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "***") {
		return
	}
	again, err := l.Parse(out, "/f/grapnel.yaml")
	if err != nil {
		t.Fatalf("%v\nin %s", err, out)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(out) {
		t.Errorf("printed %s\nthen    %s (%v)", out, second, err)
	}
}

// TestParseIsBounded gives Parse files that are as bad as they can be within
// 1 MiB.
func TestParseIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}

	fill := func(head, unit string) string { return head + strings.Repeat(unit, (maxFile-len(head))/len(unit)) }
	for name, text := range map[string]string{
		"pairs":     fill("a: ", "{a: "),
		"dashes":    fill("", "- "),
		"distinct":  distinctKeys(),
		"long text": fill("a: ", "x"),
		"long key":  fill("", "x") + ": 1",
		"wide list": fill("version: 1\nplugins: [", "{},"),
		"anchors":   fill("", "&a "),
		"stairs":    stairs(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := Parse([]byte(text[:min(len(text), maxFile)]), "f")
			if err == nil {
				t.Error("no error")
			}
		})
	}
}

// distinctKeys has as many keys as are accepted.
func distinctKeys() string {
	var b strings.Builder
	for i := range maxEntries {
		b.WriteString("k" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26%50) + ":\n")
	}
	return b.String()
}

// stairs nests one deeper with each line.
func stairs() string {
	var b strings.Builder
	for i := 0; b.Len() < maxFile-2*i; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
