package plugintest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const workVar = "$WORK"

// Fixtures runs each file "*.txtar" of a directory as a subtest by [Run] and compares the answer. A file begins with a
// comment, which should say what it pins; then come, each optional but the last,
//
//	-- hook --          the hook's name; not needed if the plugin has one hook
//	-- tool --          or the tool's name
//	-- config.json --   the operator's configuration
//	-- context.json --  the context
//	-- input.json --    the hook's input, or the tool's arguments
//	-- max_chars --     the plugin's text budget
//	-- withhold --      what the operator does not grant, separated by spaces
//	-- want.json --     the answer, as JSON of [Answer]
//
// All other files are written into a new directory, whose path $WORK stands for everywhere. If the test binary has a
// flag "update" that is true, want.json is rewritten instead:
//
//	var _ = flag.Bool("update", false, "rewrite the fixtures")
func Fixtures(t *testing.T, p *sdk.Plugin, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures *.txtar in %s (%v)", dir, err)
	}
	f := flag.Lookup("update")
	update := f != nil && f.Value.String() == "true"
	for _, path := range paths {
		// Not in parallel: one plugin is configured by one case at a time.
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			fixture(t, p, path, t.TempDir(), update)
		})
	}
}

func fixture(t TB, p *sdk.Plugin, path, work string, update bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	a := txtar.Parse(data)
	c, want, err := readFixture(t, p, a, work)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	c.anyCode = update
	out, err := encode(Run(t, p, c))
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	got := strings.ReplaceAll(string(out), work, workVar)
	switch {
	case update:
		if i := fileIndex(a, "want.json"); i >= 0 {
			a.Files[i].Data = []byte(got)
		} else {
			a.Files = append(a.Files, txtar.File{Name: "want.json", Data: []byte(got)})
		}
		if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
			t.Errorf("%v", err)
		}
	case !sameJSON(got, want):
		t.Errorf("%s: the answer is not the one wanted (run the test with -update to take it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// readFixture makes a case of an archive and writes its files.
func readFixture(t TB, p *sdk.Plugin, a *txtar.Archive, work string) (c Case, want string, err error) {
	rest := &txtar.Archive{Files: slices.Clone(a.Files)}
	cut := func(name string) string {
		i := fileIndex(rest, name)
		if i < 0 {
			return ""
		}
		text := strings.TrimSuffix(string(rest.Files[i].Data), "\n")
		rest.Files = slices.Delete(rest.Files, i, i+1)
		return text
	}
	take := func(name string) string { return strings.ReplaceAll(cut(name), workVar, work) }
	c = Case{Hook: take("hook"), Tool: take("tool"), Config: take("config.json"), Withhold: strings.Fields(take("withhold"))}
	input, maxChars := take("input.json"), take("max_chars")
	if c.Context, err = phases.DecodeContext([]byte(take("context.json"))); err != nil {
		return c, "", fmt.Errorf("context.json: %w", err)
	}
	if maxChars != "" {
		if c.MaxChars, err = strconv.Atoi(maxChars); err != nil {
			return c, "", fmt.Errorf("max_chars: %w", err)
		}
	}
	want = cut("want.json") // its $WORK stays, as in what it is compared with
	c.WantCode = wantedCode(want)
	if err := writeFiles(rest, work); err != nil {
		return c, "", err
	}
	if c.Tool != "" {
		c.Arguments = input
		return c, want, nil
	}
	return c, want, c.fillHook(t, p, input)
}

func fileIndex(a *txtar.Archive, name string) int {
	return slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
}

// fillHook finds the hook and decodes its input.
func (c *Case) fillHook(t TB, p *sdk.Plugin, input string) error {
	d, err := p.Configure(t.Context(), &phases.Configuration{Instance: p.Name, Config: json.RawMessage(c.Config), Host: &Host{}})
	if err != nil {
		return err
	}
	if c.Hook == "" && len(d.Hooks) == 1 {
		c.Hook = d.Hooks[0].Name
	}
	for i := range d.Hooks {
		if d.Hooks[i].Name != c.Hook {
			continue
		}
		table := phases.Standard()
		if _, ok := table.Lookup(d.Hooks[i].Phase); !ok {
			if table, err = phases.NewTable(phases.Custom(d.Hooks[i].Phase, "", 0)); err != nil {
				return err
			}
		}
		c.Input, err = phases.DecodeInput(table, d.Hooks[i].Phase, []byte(input))
		return err
	}
	return fmt.Errorf("the file names no hook of the plugin: %q", c.Hook)
}

func wantedCode(want string) string {
	var a struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(want), &a) != nil {
		return "" // then the comparison fails
	}
	return a.Error.Code
}

// writeFiles writes files for their owner alone, over those that are there.
func writeFiles(a *txtar.Archive, work string) error {
	for _, f := range a.Files {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the file %q lies outside", f.Name)
		}
		path := filepath.Join(work, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	first, err1 := encode(x)
	second, err2 := encode(y)
	return err1 == nil && err2 == nil && string(first) == string(second)
}
