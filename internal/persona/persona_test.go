package persona_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// must ends the test for an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newHome is a folder with files.
func newHome(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, dir, name, content)
	}
	return dir
}

func put(t testing.TB, dir, name, content string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

// codes lists the diagnostics of a persona: "code section" each.
func codes(f *persona.Files) []string {
	list := []string{}
	for _, file := range f.All() {
		for _, d := range file.Diagnostics {
			list = append(list, d.Code+" "+d.Slot)
		}
	}
	return list
}

// rows lists the files of a persona.
func rows(f *persona.Files) []manifest.File {
	var list []manifest.File
	for _, file := range f.All() {
		list = append(list, file.Row)
	}
	return list
}

func TestLoad(t *testing.T) {
	t.Parallel()

	const missing, loaded = persona.StatusMissing, persona.StatusLoaded
	row := func(name, status string, chars int) manifest.File {
		return manifest.File{Path: name, Status: status, Chars: chars}
	}
	nowhere := []manifest.File{row("SOUL.md", missing, 0), row("IDENTITY.md", missing, 0), row("USER.md", missing, 0)}
	none := []string{"missing_file soul_core", "missing_file identity_core"}
	for _, tt := range []struct {
		name  string
		dir   string
		rows  []manifest.File
		codes []string
	}{
		{
			"all three, in order", newHome(t, map[string]string{"SOUL.md": "soul", "IDENTITY.md": "é", "USER.md": "tea\n", "OTHER.md": "no"}),
			[]manifest.File{row("SOUL.md", loaded, 4), row("IDENTITY.md", loaded, 1), row("USER.md", loaded, 4)},
			[]string{},
		},
		{
			"empty is not missing", newHome(t, map[string]string{"SOUL.md": "", "IDENTITY.md": "\ufeff", "USER.md": ""}),
			[]manifest.File{row("SOUL.md", loaded, 0), row("IDENTITY.md", loaded, 0), row("USER.md", loaded, 0)},
			[]string{},
		},
		{"nothing", t.TempDir(), nowhere, none},
		{"a directory that is not there", filepath.Join(t.TempDir(), "not", "there"), nowhere, none},
		{"no directory", "", nowhere, none},
	} {
		f := persona.Load(tt.dir)
		if diff := cmp.Diff(rows(&f), tt.rows); diff != "" {
			t.Errorf("%s: rows (-got +want):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(codes(&f), tt.codes); diff != "" {
			t.Errorf("%s: diagnostics (-got +want):\n%s", tt.name, diff)
		}
	}
}

// TestLoadTexts: what a file holds, and what is made of it.
func TestLoadTexts(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		content, text string
		codes         []string
	}{
		{"# I\n\n  am\n", "# I\n\n  am\n", []string{}},
		{"\ufeffa\r\nb\rc\r\n", "a\nb\nc\n", []string{}},
		{"a\ufffdb", "a\ufffdb", []string{}},
		{"a\x00b", "a\ufffdb", []string{"invalid_utf8 user_persona"}},
		{"caf\xe9 \xff\xfe! \xe2\x82", "caf\ufffd \ufffd! \ufffd", []string{"invalid_utf8 user_persona"}},
	} {
		f := persona.Load(newHome(t, map[string]string{"SOUL.md": "s", "IDENTITY.md": "i", "USER.md": tt.content}))
		if f.User.Text != tt.text || f.User.Row.Status != persona.StatusLoaded || f.User.Row.Chars != text.Chars(tt.text) {
			t.Errorf("user = %+v, want %q", f.User, tt.text)
		}
		if diff := cmp.Diff(codes(&f), tt.codes); diff != "" {
			t.Errorf("%q: diagnostics (-got +want):\n%s", tt.content, diff)
		}
	}
}

// TestLoadLarge: a file is read to its bound, which never parts a character and
// is no damage of the file.
func TestLoadLarge(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		content string
		chars   int
		message string
	}{
		{"at the bound", strings.Repeat("x", persona.MaxBytes), persona.MaxBytes, ""},
		{"one more", strings.Repeat("x", persona.MaxBytes+1), persona.MaxBytes, "SOUL.md is too large: only the first 1,048,576 of its 1,048,577 bytes were read"},
		{"a cut character", strings.Repeat("€", persona.MaxBytes/3+1), persona.MaxBytes / 3, "SOUL.md is too large: only the first 1,048,576 of its 1,048,578 bytes were read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			f := persona.Load(newHome(t, map[string]string{"SOUL.md": tt.content, "IDENTITY.md": "i"}))
			if f.Soul.Row != (manifest.File{Path: "SOUL.md", Status: persona.StatusLoaded, Chars: tt.chars}) || !strings.HasPrefix(tt.content, f.Soul.Text) {
				t.Errorf("row = %+v", f.Soul.Row)
			}
			var want []phases.Diagnostic
			if tt.message != "" {
				want = []phases.Diagnostic{{Code: "file_truncated", Severity: phases.SeverityWarning, Message: tt.message, Slot: "soul_core", SafeForUser: true}}
			}
			if diff := cmp.Diff(f.Soul.Diagnostics, want); diff != "" {
				t.Errorf("diagnostics (-got +want):\n%s", diff)
			}
		})
	}
}

// FuzzLoad: whatever is in a file, what comes of it can go into a prompt, and
// only a repair is told.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{"", "plain\n", "\ufeff\ufeffx", "a\r\n\rb", "\x00", "\xff\xfeh\x00i\x00", "€\xe2\x82", "<!-- grapnel:dynamic -->"} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		put(t, dir, "SOUL.md", content)
		files := persona.Load(dir)
		got := files.Soul
		if got.Row.Status != persona.StatusLoaded || got.Row.Chars != text.Chars(got.Text) {
			t.Fatalf("row = %+v", got.Row)
		}
		if err := text.Valid(got.Text); err != nil {
			t.Fatalf("%q became %q: %v", content, got.Text, err)
		}
		if strings.ContainsRune(got.Text, '\r') || len(got.Text) > 3*len(content) {
			t.Fatalf("%q became %q", content, got.Text)
		}
		if whole := text.Valid(content) == nil; whole != (len(got.Diagnostics) == 0) || whole && got.Text != text.Normalize(content) {
			t.Fatalf("%q became %q with %+v", content, got.Text, got.Diagnostics)
		}
	})
}
