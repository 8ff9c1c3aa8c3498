package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// realRoots are the real paths of the folders that turns may have their dir in.
// One that is not there is a mistake in the configuration.
func realRoots(roots []string) ([]string, error) {
	var all []string
	for _, root := range roots {
		if !filepath.IsAbs(root) {
			return nil, fmt.Errorf("gateway: the root %q is not an absolute path", root)
		}
		path, err := realFolder(root)
		if err != nil {
			return nil, fmt.Errorf("gateway: the root %q: %w", root, err)
		}
		all = append(all, path)
	}
	return all, nil
}

// inRoots returns the real path of a folder below one of the roots, or of a root,
// and the widest root that contains it. Plugins get both: a folder can be swapped for
// a link after this look, so whoever opens files opens them beneath the root. Empty
// stays empty.
//
// A folder that is not there and one that may not be seen give the same answer:
// the gateway does not tell what is on its disk.
func (g *Gateway) inRoots(dir string) (path, root string, err error) {
	if dir == "" {
		return "", "", nil
	}
	roots := g.settings.Load().roots
	if len(roots) == 0 {
		return "", "", errors.New("this gateway has no roots, and takes no dir; see serve.roots in its configuration")
	}
	if !filepath.IsAbs(dir) {
		return "", "", fmt.Errorf("%q is not an absolute path", dir)
	}
	if path, err = realFolder(dir); err == nil {
		for _, r := range roots {
			if below(path, r) && (root == "" || len(r) < len(root)) {
				root = r
			}
		}
	}
	if root == "" {
		return "", "", fmt.Errorf("%q is no folder below the gateway's roots", dir)
	}
	return path, root, nil
}

// realFolder is the path of a folder without links.
func realFolder(dir string) (string, error) {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", errors.New("it is not a folder")
	}
	return path, nil
}

// below reports whether a clean path is root or lies in it.
func below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}
