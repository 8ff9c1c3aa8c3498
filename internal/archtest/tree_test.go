package archtest

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repoRoot returns the folder of the main go.mod: tests run in the folder of
// their package, two below it.
func repoRoot(t *testing.T) string {
	t.Helper()

	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), "module "+modulePath+"\n") {
		t.Fatalf("%s is not the module %s", root, modulePath)
	}
	return root
}

// goDirs lists the folders below root that hold Go files, slash-separated and
// relative to it, those of nested modules included. Folders that the go command
// does not look into either (testdata, names with a leading dot or underscore)
// are omitted.
func goDirs(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if path != root && skipDir(d.Name()) {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return err
		}
		if len(files) > 0 {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			dirs = append(dirs, filepath.ToSlash(rel))
		}
		return nil
	})
	return dirs, err
}

// skipDir reports whether the go command ignores a folder of this name.
func skipDir(name string) bool {
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// platforms are the systems whose build constraints are looked at: a file for
// one of them must keep the rules although the others never compile it.
func platforms() []build.Context {
	var list []build.Context
	for _, p := range [][2]string{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	} {
		c := build.Default
		c.GOOS, c.GOARCH = p[0], p[1]
		// With cgo on, a file that imports "C" takes part and is found.
		c.CgoEnabled = true
		list = append(list, c)
	}
	return list
}

// report fails the test once per problem.
func report(t *testing.T, problems []string) {
	t.Helper()

	for _, p := range problems {
		t.Error(p)
	}
}
