package runtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
)

// writePersona puts files into a persona directory.
func writePersona(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// withPersona is an engine with a persona directory.
func withPersona(dir string) *hosted {
	h := newHosted()
	h.opts.PersonaDir = dir
	return h
}

// remarks lists the diagnostics of a manifest: "code section" each.
func remarks(m *manifest.Manifest) []string {
	list := []string{}
	for _, d := range m.Diagnostics {
		list = append(list, strings.TrimSpace(d.Code+" "+d.SectionID))
	}
	return list
}

func file(name, status string, chars int) manifest.File {
	return manifest.File{Path: name, Status: status, Chars: chars}
}

// TestPersona: the texts stand in their sections, and the manifest says how much of
// each file.
func TestPersona(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		files   map[string]string
		prompt  runtime.CompileInput
		rows    []manifest.File
		remarks []string
		has     []string
	}{
		{
			name:    "all three",
			files:   map[string]string{"SOUL.md": "Curious.\n", "IDENTITY.md": "\ufeffI am\r\nProbe.", "USER.md": "Likes tea."},
			rows:    []manifest.File{file("SOUL.md", "loaded", 8), file("IDENTITY.md", "loaded", 11), file("USER.md", "loaded", 10)},
			remarks: []string{},
			has: []string{
				"## Soul Core\n\nCurious.\n\n(This is your file SOUL.md.", "## Identity Core\n\nI am\nProbe.\n\n(This is your file IDENTITY.md.",
				"## User Persona\n\nLikes tea.\n\n",
			},
		},
		{
			name:    "an empty directory",
			rows:    []manifest.File{file("SOUL.md", "missing", 0), file("IDENTITY.md", "missing", 0), file("USER.md", "missing", 0)},
			remarks: []string{"missing_file", "missing_file"},
		},
		{
			name:    "the host's own text wins, and its file does not count; an empty one, and no user",
			files:   map[string]string{"SOUL.md": "of the file\x00", "IDENTITY.md": ""},
			prompt:  runtime.CompileInput{Host: compiler.HostTexts{SoulCore: "of the host"}},
			rows:    []manifest.File{file("IDENTITY.md", "loaded", 0), file("USER.md", "missing", 0)},
			remarks: []string{},
			has:     []string{"of the host"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			eng := withPersona(writePersona(t, t.TempDir(), tt.files)).start(t)
			done := prompted(t)(eng.CompileTurn(t.Context(), host(), tt.prompt))
			checkSame(t, "files", done.Manifest.Files, tt.rows)
			checkSame(t, "diagnostics", remarks(done.Manifest), tt.remarks)
			if len(done.Diagnostics) != len(tt.remarks) {
				t.Errorf("the turn was told %v", done.Diagnostics)
			}
			for _, want := range tt.has {
				if !strings.Contains(done.Prompt.FullText, want) {
					t.Errorf("%q is not in the prompt:\n%s", want, done.Prompt.FullText)
				}
			}
			if n := strings.Count(done.Prompt.FullText, compiler.Boundary); n != 1 {
				t.Errorf("%d boundaries", n)
			}
		})
	}
}

// TestSeedPersona: New prepares the directory where that is wanted, and fails if it
// cannot.
func TestSeedPersona(t *testing.T) {
	t.Parallel()

	h := withPersona(filepath.Join(t.TempDir(), "new", "home"))
	h.opts.SeedPersona = true
	done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
	var statuses []string
	for _, f := range done.Manifest.Files {
		statuses = append(statuses, f.Status)
	}
	if diff := cmp.Diff(statuses, []string{"loaded", "loaded", "missing"}); diff != "" || len(done.Diagnostics) != 0 {
		t.Errorf("files (-got +want):\n%s\ndiagnostics: %v", diff, done.Diagnostics)
	}

	dir := writePersona(t, t.TempDir(), map[string]string{"file": ""})
	for place, want := range map[string]string{"": "the option SeedPersona needs a PersonaDir", filepath.Join(dir, "file"): "persona directory: "} {
		h := withPersona(place)
		h.opts.SeedPersona = true
		if eng, err := runtime.New(t.Context(), &h.cfg, h.opts); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New with the directory %q = %v, %v, want %q", place, eng, err, want)
		}
	}
}

// TestRelativePersona: a persona directory stays where it was when the engine was made.
func TestRelativePersona(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("home", 0o700); err != nil {
		t.Fatal(err)
	}
	writePersona(t, "home", map[string]string{"SOUL.md": "calm"})
	eng := withPersona("home").start(t)
	t.Chdir(t.TempDir())
	done := prompted(t)(compile(t, eng, runtime.CompileInput{}))
	if done.Manifest.Files[0] != file("SOUL.md", "loaded", 4) {
		t.Errorf("files = %v", done.Manifest.Files)
	}
}
