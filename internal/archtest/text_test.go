package archtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// placeholderHomes are the user names that documents and tests may use for
// somebody's home folder.
const placeholderHomes = "alice|bob|me|u|user|you"

// machinePath matches the beginning of an absolute path that only one machine
// has: a checkout's folder or somebody's home. The pieces are put together here
// so that this file does not match itself.
func machinePath() *regexp.Regexp {
	start := `(?:^|[^\w./~*\-\]}$)])`
	return regexp.MustCompile(start + `(/(?:work|root)(?:/[\w.\-]+)+|/(?:home|Users)/[a-z][\w.\-]*)`)
}

// registryHosts matches the hosts from which packages are downloaded. A build
// takes them from the developer's own settings.
func registryHosts() *regexp.Regexp {
	hosts := []string{
		"proxy" + ".golang.org", "sum" + ".golang.org", "registry" + ".npmjs.org", "registry" + ".yarnpkg.com",
		"deb" + ".debian.org", "security" + ".debian.org", "pypi" + ".org", "crates" + ".io", "repo1" + ".maven.org",
	}
	for i, h := range hosts {
		hosts[i] = regexp.QuoteMeta(h)
	}
	return regexp.MustCompile(`\b(` + strings.Join(hosts, "|") + `)\b`)
}

// checkText lists lines of one file that name a place of one machine or a
// package registry. Binary files have no lines.
func checkText(name string, data []byte) []string {
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return nil
	}
	paths, hosts := machinePath(), registryHosts()
	homes := regexp.MustCompile(`^/(?:home|Users)/(?:` + placeholderHomes + `)$`)
	var problems []string
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		for _, m := range paths.FindAllStringSubmatch(line, -1) {
			if !homes.MatchString(m[1]) {
				problems = append(problems, fmt.Sprintf("%s:%d: path of one machine %s: use a temporary folder, or /repo in an example", name, number, m[1]))
			}
		}
		if host := hosts.FindString(line); host != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: package registry %s", name, number, host))
		}
	}
	return problems
}

// trackedFiles lists the files of the repository below root that git tracks or
// would add. Without git, or outside a checkout, it lists all files but git's
// own.
func trackedFiles(ctx context.Context, root string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache") {
			return filepath.SkipDir
		}
		if rel, err := filepath.Rel(root, path); err == nil && d.Type().IsRegular() {
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names, err
}

func TestTrackedText(t *testing.T) {
	t.Parallel()

	root := repoRoot(t)
	names, err := trackedFiles(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "internal/archtest/text_test.go") {
		t.Fatalf("this file is not among the %d files found", len(names))
	}
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted but not yet committed, or a link
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkText(name, data))
	}
}
