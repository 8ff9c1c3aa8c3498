package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onlySkill is the file of the skill that rows about skills have.
const onlySkill = ".agents/skills/one/SKILL.md"

// repositoryRows are all rows.
func repositoryRows() []repositoryRow {
	var all []repositoryRow
	for class, rows := range map[string][]repositoryRow{
		"link": linkRows(), "special file": specialFileRows(), "large": largeRows(), "deep": deepRows(), "text": textRows(),
		"front matter": frontMatterRows(), "import": importRows(), "git": gitRows(), "program": programRows(), "changing": changingRows(),
	} {
		for i := range rows {
			rows[i].class = class
		}
		all = append(all, rows...)
	}
	return all
}

// planted is a build that only writes files; "-> X" is a link, OUT the place outside.
func planted(files map[string]string) func(*testing.T, *hostileTree) {
	return func(t *testing.T, h *hostileTree) {
		t.Helper()
		for name, text := range files {
			h.write(t, name, strings.ReplaceAll(text, "OUT", h.outside))
		}
	}
}

// write writes a file in the place of what has its name.
func (h *hostileTree) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(h.root, name)); err != nil {
		t.Fatal(err)
	}
	plant(t, h.root, map[string]string{name: text})
}

// linkRows have links in the place of what is read.
func linkRows() []repositoryRow {
	var rows []repositoryRow
	for _, at := range []string{"AGENTS.md", onlySkill} {
		up := strings.Repeat("../", strings.Count(at, "/"))
		for name, target := range map[string]string{
			"absolute": "OUT/SKILL.md", "relative": up + "../outside/SKILL.md", "chain": up + "first", "environment": "/proc/self/environ",
			"endless": "/dev/zero", "standard input": "/dev/stdin", "descriptor": "/proc/self/fd/0", "directory": "OUT",
		} {
			rows = append(rows, repositoryRow{name: "link " + name + " " + at, code: "symlink_escape", build: planted(map[string]string{
				at: "-> " + target, "first": "-> second", "second": "-> third", "third": "-> OUT/SKILL.md",
			})})
		}
		rows = append(rows, repositoryRow{name: "link loop " + at, code: "read_error", build: planted(map[string]string{at: "-> SKILL.md.2", filepath.Dir(at) + "/SKILL.md.2": "-> " + filepath.Base(at)})})
	}
	for name, target := range map[string]string{".agents": "OUT", ".agents/skills": "OUT/skills", ".agents/skills/one": "OUT/one"} {
		rows = append(rows, repositoryRow{name: "linked directory " + name, code: "symlink_escape", build: planted(map[string]string{name: "-> " + target})})
	}
	for name, target := range map[string]string{".gitignore": "OUT/.gitignore", ".git/info": "OUT/info", ".git/info/exclude": "OUT/info/exclude", ".git": "OUT"} {
		rows = append(rows, repositoryRow{name: "linked " + name, code: "not_regular", touch: "hidden/x", build: planted(map[string]string{
			name: "-> " + target, "hidden/AGENTS.md/x": "a directory, which lint reports unless a pattern hides it", "AGENTS.local.md": "mine",
		})})
	}
	return rows
}

// specialFileRows have pipes, sockets, devices and directories in the place of files.
func specialFileRows() []repositoryRow {
	var rows []repositoryRow
	for _, at := range []string{"AGENTS.md", onlySkill, ".gitignore", ".git/info/exclude", ".git/index", ".git"} {
		for kind, mode := range map[string]uint32{"pipe": unix.S_IFIFO, "socket": unix.S_IFSOCK, "device": unix.S_IFCHR, "directory": unix.S_IFDIR} {
			if at == ".git" && kind == "directory" {
				continue
			}
			code, touch := "", "x/y"
			if at == "AGENTS.md" || at == onlySkill {
				code, touch = "not_regular", ""
			}
			rows = append(rows, repositoryRow{name: kind + " " + at, code: code, touch: touch, build: func(t *testing.T, h *hostileTree) {
				t.Helper()
				h.write(t, at, "")
				h.write(t, "AGENTS.local.md", "mine")
				path := filepath.Join(h.root, at)
				err := os.Remove(path)
				if err == nil && kind == "directory" {
					err = os.Mkdir(path, 0o700)
				} else if err == nil {
					err = unix.Mknod(path, mode|0o600, int(unix.Mkdev(1, 5))) // of /dev/zero
				}
				if os.IsPermission(err) {
					t.Skip("only root makes devices:", err)
				} else if err != nil {
					t.Fatal(err)
				}
			}})
		}
	}
	return rows
}

// largeRows have more of something than anybody reads.
func largeRows() []repositoryRow {
	const huge = 8 << 30
	var rows []repositoryRow
	for name, code := range map[string]string{"AGENTS.md": "binary", onlySkill: "file_too_large", ".gitignore": "", ".git/info/exclude": "", ".git/index": ""} {
		rows = append(rows, repositoryRow{name: "8 GiB " + name, code: code, touch: "x/y", build: func(t *testing.T, h *hostileTree) {
			t.Helper()
			h.write(t, "AGENTS.local.md", "mine")
			h.write(t, name, "DIRC\x00\x00\x00\x02\xff\xff\xff\xff"[:12*strings.Count(name, "index")])
			if err := os.Truncate(filepath.Join(h.root, name), huge); err != nil {
				t.Fatal(err)
			}
		}})
	}
	line := strings.Repeat("a", 10<<20)
	return append(rows,
		repositoryRow{name: "10 MiB in a line", code: "read_cap", build: planted(map[string]string{"AGENTS.md": line, onlySkill: line, ".git/info/exclude": line, ".gitignore": line})},
		repositoryRow{name: "10 MiB of front matter", code: "file_too_large", build: planted(map[string]string{onlySkill: "---\nname: one\ndescription: " + line + "\n---\n"})},
		repositoryRow{name: "a million patterns", touch: "a/b/c", build: planted(map[string]string{".gitignore": strings.Repeat("*a*b*c*d*/\n", 1<<20), ".git/info/exclude": strings.Repeat("[a-\n[!\n", 1<<18), "a/b/c/x": ""})},
		repositoryRow{name: "crowded directory", code: "too_many", build: crowd(true, rounds(20_000, 2_000))},
		repositoryRow{name: "crowd of directories with an AGENTS.md", build: crowd(false, rounds(2_000, 200))},
	)
}

// crowd makes many names in the root and in the directory of skills: files, or directories
// with a file each.
func crowd(files bool, n int) func(*testing.T, *hostileTree) {
	return func(t *testing.T, h *hostileTree) {
		t.Helper()
		plant(t, h.root, map[string]string{".agents/skills/x": "", "many/x": ""})
		for i := range n {
			name, skill := fmt.Sprintf("%s/many/%d", h.root, i), fmt.Sprintf("%s/.agents/skills/%d", h.root, i)
			var err error
			if files {
				err = os.WriteFile(name, nil, 0o600)
			} else if err = os.Mkdir(name, 0o700); err == nil {
				err = os.Link(filepath.Join(h.root, "AGENTS.md"), name+"/AGENTS.md")
			}
			if err == nil && i < 2000 {
				err = os.Mkdir(skill, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// deepRows nest directories.
func deepRows() []repositoryRow {
	const levels = 1900
	some := rounds(500, 20)
	end := strings.Repeat("d/", levels)
	near := strings.Repeat("d/", some)
	catastrophe := strings.Repeat("**/"+strings.Repeat("*a", 20)+"/**/*x/[!]-a]*\n", 4000)
	return []repositoryRow{
		{name: "1,900 deep", mayFail: true, code: "path_too_long", dir: end, build: nested(levels, "d", nil)},
		{name: "1,900 deep, each with an AGENTS.md", code: "path_too_long", touch: end + "x", build: nested(levels, "d", map[string]string{"AGENTS.md": "deep\n"})},
		{name: "deep, each with 1 MiB", mayFail: true, code: "read_cap", dir: near, touch: near + "x", build: nested(some, "d", map[string]string{"AGENTS.md": strings.Repeat("x y z\n", 1<<20/6)})},
		{name: "deep, each with patterns", touch: near + "x", build: nested(some, "d", map[string]string{".gitignore": strings.Repeat("**/q*q/*\n", 4000)})},
		{name: "catastrophic patterns", touch: strings.Repeat("aaaa/", 700) + "x", build: func(t *testing.T, h *hostileTree) {
			t.Helper()
			h.write(t, ".gitignore", catastrophe)
			h.write(t, ".git/info/exclude", catastrophe)
			nested(700, "aaaa", nil)(t, h)
		}},
	}
}

// nested makes directories in each other, each with links to the files.
func nested(levels int, name string, files map[string]string) func(*testing.T, *hostileTree) {
	return func(t *testing.T, h *hostileTree) {
		t.Helper()
		for file, text := range files {
			h.write(t, file, text)
		}
		dir, err := os.OpenRoot(h.root)
		for level := 0; err == nil && level < levels; level++ {
			var next *os.Root
			if err = dir.Mkdir(name, 0o700); err == nil {
				next, err = dir.OpenRoot(name)
			}
			for file := range files {
				if err == nil {
					err = os.Link(filepath.Join(h.root, file), filepath.Join(h.root, strings.Repeat(name+"/", level+1), file))
				}
			}
			_ = dir.Close()
			dir = next
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = dir.Close()
	}
}
