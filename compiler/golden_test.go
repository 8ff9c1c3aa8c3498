package compiler

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "write the expectations of testdata anew")

// scenario is an Input that can be written as JSON.
type scenario struct {
	Input
	Sections []hookSection
	Tools    []phases.Tool
	// CountTokens is a word here: "words" counts words.
	CountTokens string
	// Before is compiled first, and its manifest is the previous one: so many
	// seconds old, and of the same session unless NewSession says otherwise.
	Before     *scenario
	Age        int
	NewSession bool
}

// hookSection spells out what a merged section does not show in JSON.
type hookSection struct {
	phases.MergedSection
	Title     string
	Placement phases.Placement
	Original  int
	Refs      []phases.SourceRef
}

func (s *scenario) input(t *testing.T) Input {
	t.Helper()
	in := s.Input
	for _, h := range s.Sections {
		m := h.MergedSection
		m.Title, m.Placement, m.OriginalChars, m.SourceRefs = h.Title, h.Placement, h.Original, h.Refs
		in.Sections = append(in.Sections, m)
	}
	for _, tool := range s.Tools {
		in.Tools = append(in.Tools, phases.MergedTool{
			Name: tool.Name, BundleID: "b", Owner: "p", Definition: tool, Hash: manifest.Hash(tool.Name, nil),
		})
	}
	if s.CountTokens == "words" {
		in.CountTokens = func(s string) int { return len(strings.Fields(s)) }
		in.Tokenizer = "words"
	}
	if s.Before != nil {
		out, err := Compile(s.Before.input(t))
		if err != nil {
			t.Fatal(err)
		}
		m := sealed(t, &out)
		m.SessionID = "before"
		session := m.SessionID
		if s.NewSession {
			session = "now"
		}
		in.Previous = PreviousOf(new(m.Outline()), m.CreatedAt.Add(time.Duration(s.Age)*time.Second), session)
	}
	return in
}

// TestGolden runs the archives of testdata. The comment of each says what it
// pins; input.json is the scenario; the other files are the expectations.
func TestGolden(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()

			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := goldenFiles(t, ar)
			if *update {
				ar.Files = got
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := &txtar.Archive{Files: ar.Files}
			if diff := cmp.Diff(string(txtar.Format(&txtar.Archive{Files: got})), string(txtar.Format(want))); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// goldenFiles compiles the archive's input and writes down all that came of it.
func goldenFiles(t *testing.T, ar *txtar.Archive) []txtar.File {
	t.Helper()
	if len(ar.Files) == 0 || ar.Files[0].Name != "input.json" {
		t.Fatal("the first file is not input.json")
	}
	var s scenario
	dec := json.NewDecoder(bytes.NewReader(ar.Files[0].Data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil { //nolint:musttag // scenarios use the names of Go
		t.Fatal(err)
	}
	out, err := Compile(s.input(t))
	if err != nil {
		t.Fatal(err)
	}
	checkOutput(t, &out)
	checkSchema(t, &out)
	files := ar.Files[:1:1]
	add := func(name, text string) {
		if text = strings.TrimSuffix(text, "\n"); text != "" {
			files = append(files, txtar.File{Name: name, Data: []byte(text + "\n")})
		}
	}
	add("full_text", out.Prompt.FullText)
	add("messages", messages(&out.Prompt))
	add("sections", sectionLines(out.Sections))
	add("omitted", lines(out.Omitted, func(l phases.Omitted) string {
		return fmt.Sprintf("%s (%s): %s, %d chars", l.ID, l.Owner, l.Reason, l.Chars)
	}))
	add("diagnostics", lines(out.Diagnostics, func(d phases.Diagnostic) string {
		return fmt.Sprintf("%s %s %s: %s", d.Severity, d.Code, d.Slot, d.Message)
	}))
	add("texts", lines(out.Texts, func(x manifest.Text) string { return fmt.Sprintf("[%s]\n%s", x.Hash, x.Text) }))
	cache, err := json.MarshalIndent(out.Cache, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	add("cache", string(cache))
	return files
}

// checkSchema holds the record against the published schema.
func checkSchema(t *testing.T, out *Output) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(manifest.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := sealed(t, out)
	b, err := manifest.Canonical(&m)
	if err != nil {
		t.Fatal(err)
	}
	var record any
	if err := json.Unmarshal(b, &record); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(record); err != nil {
		t.Error(err)
	}
}

func lines[T any](list []T, line func(T) string) string {
	var b strings.Builder
	for _, x := range list {
		b.WriteString(line(x) + "\n")
	}
	return b.String()
}

func messages(p *Prompt) string {
	line := func(m Message) string { return fmt.Sprintf("[%s %s]\n%s", m.Role, m.SectionID, m.Text) }
	return lines(p.SystemMessages, line) + lines(p.UserMessages, line)
}

func sectionLines(list []manifest.Section) string {
	return lines(list, func(s manifest.Section) string {
		var line strings.Builder
		fmt.Fprintf(&line, "%d %s %q %s %s %s, %d of %d chars, %s", s.Position, s.SectionID, s.Title, s.Stability, s.Placement, s.Owner,
			s.Chars, s.OriginalChars, s.Fingerprint)
		if s.Tokens != nil {
			fmt.Fprintf(&line, ", %d %s", *s.Tokens, s.Tokenizer)
		}
		if s.Truncation != nil {
			fmt.Fprintf(&line, ", cut by %s from %d to %d", s.Truncation.Limit, s.Truncation.Original, s.Truncation.Kept)
		}
		for _, r := range s.SourceRefs {
			fmt.Fprintf(&line, ", from %s %s", r.Kind, r.ID)
		}
		return line.String()
	})
}
