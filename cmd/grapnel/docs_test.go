package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/tree"
)

func TestSafeName(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"a/b\\c":                 "a_b_c",
		"..":                     "_",
		".git":                   "_git",
		"agents.MD":              "agents.MD_",
		"con":                    "con_",
		"Com1.txt":               "Com1.txt_",
		"a\u202eb":               "a_b",
		`<>:"|?*`:                "_______",
		strings.Repeat("é", 100): strings.Repeat("é", 40),
		"\xff":                   "_",
	} {
		if got := safeName(name); got != want {
			t.Errorf("safeName(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzSafeName: whatever a folder is called, its name on disk is one element of a
// path that hides nothing, and stays what it is.
func FuzzSafeName(f *testing.F) {
	for _, name := range []string{"", "..", "a/b", "CON", "AGENTS.md", ". ", "\xff\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := safeName(name)
		if got == "" || len(got) > maxFileName+1 || !utf8.ValidString(got) || !filepath.IsLocal(got) || path.Base(got) != got ||
			strings.HasPrefix(got, ".") || strings.EqualFold(got, docFile) || strings.ContainsAny(got, "\\/\x00\n") {
			t.Errorf("safeName(%q) = %q", name, got)
		}
		if again := safeName(got); again != got {
			t.Errorf("safeName(%q) = %q", got, again)
		}
	})
}

// TestExportBesideOddNames: no folder of an export is in the way of its files, and what
// a killed export left is replaced.
func TestExportBesideOddNames(t *testing.T) {
	t.Parallel()

	name := t.TempDir()
	d := must(openDocsDir(name, false, false))(t)
	defer d.close()
	folders := []tree.Folder{}
	for _, n := range []string{docFile + ".grapnel-new", freshName, indexName, indexName + ".grapnel-new"} {
		folders = append(folders, tree.Folder{ID: n, Name: n})
	}
	for _, at := range layout(folders) {
		if err := d.makeFolder(at); err != nil {
			t.Fatal(err)
		}
		if err := d.write(path.Join(at, docFile), []byte(at)); err != nil {
			t.Error(err)
		}
	}
	put(t, filepath.Join(name, freshName), "half")
	for range 2 {
		if err := d.write(docFile, []byte("root")); err != nil {
			t.Error(err)
		}
		if err := d.writeIndex(docsIndex{Schema: indexSchema, WorkspaceID: "w"}); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(name, freshName)); err == nil {
		t.Error("a stale file is left")
	}
}

// TestLayoutIsOneToOne: in any tree each folder has a path of its own, below its
// parent's, also where case does not count.
func TestLayoutIsOneToOne(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "A", "a~2", "..", "AGENTS.md", "x/y", "x_y", " "}
	for range 200 {
		var folders []tree.Folder
		for i := range 30 {
			f := tree.Folder{ID: fmt.Sprint("f", i), Name: names[random.IntN(len(names))]}
			if i > 0 && random.IntN(3) > 0 {
				f.ParentID = tree.FolderID(fmt.Sprint("f", random.IntN(i)))
			}
			folders = append(folders, f)
		}
		paths, seen := layout(folders), map[string]bool{}
		for _, f := range folders {
			p := paths[tree.FolderID(f.ID)]
			if low := strings.ToLower(p); p == "" || seen[low] || path.Dir(p) != paths[f.ParentID] {
				t.Fatalf("%+v has the path %q, in %v", f, p, paths)
			}
			seen[strings.ToLower(p)] = true
		}
	}
}

func TestReadDoc(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	plant(t, dir, map[string]string{
		"AGENTS.md": "a\r\nb\r", "full/AGENTS.md": strings.Repeat("\U0001F600", tree.MaxChars), "over/AGENTS.md": strings.Repeat("x", tree.MaxChars+1),
		"huge/AGENTS.md": strings.Repeat("x", maxDocBytes+1), "bytes/AGENTS.md": "\xff", "folder/AGENTS.md/x": "", "file": "",
	})
	d := must(openDocsDir(dir, false, false))(t)
	defer d.close()
	for _, tt := range []struct {
		dir   string
		there bool
		says  string
		text  string
	}{
		{".", true, "", "a\nb\n"},
		{"full", true, "", strings.Repeat("\U0001F600", tree.MaxChars)},
		{"over", true, "65537 characters, at most 65536", ""},
		{"huge", true, "262,148 bytes", ""},
		{"bytes", true, "not valid UTF-8", ""},
		{"folder", true, "not a regular file", ""},
		{"nowhere/at/all", false, "", ""},
		{"file/x", false, "not touched", ""},
	} {
		got, err := d.readDoc(tt.dir)
		if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) || got.there != tt.there || got.text != tt.text {
			t.Errorf("%s: there %v, %d bytes, %v", tt.dir, got.there, len(got.text), err)
		}
		if got.text != "" && got.sum != tree.Sum(got.text) {
			t.Errorf("%s: sum %s", tt.dir, got.sum)
		}
	}
}
