package main

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// source is an agent's program on the npm registry. The packages of a platform run without the Node.js that a vendor's
// wrapper needs.
type source struct {
	spec      string // npm's name for it, with %s for the version
	integrity string // of the pinned version's archive
	program   string // in the package; a name with .js is run by Node.js
}

// anyPlatform is the platform of what runs everywhere.
const anyPlatform = ""

// get gets an agent's program, unless the cache has it.
func (l *lab) get(ctx context.Context, a *agent) error {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	s, ok := a.sources[platform]
	if !ok {
		if s, ok = a.sources[anyPlatform]; !ok {
			return fmt.Errorf("there is no package for %s; add it to agents in hosts.go", platform)
		}
	}
	if l.newest {
		version, err := newestVersion(ctx, a.pkg)
		if err != nil {
			return err
		}
		if version != a.version {
			a.version, s.integrity = version, ""
		}
	}
	dir := filepath.Join(l.cache, a.name+"-"+a.version+"-"+strings.ReplaceAll(platform, "/", "-"))
	a.command = []string{filepath.Join(dir, "package", s.program)}
	if strings.HasSuffix(s.program, ".js") {
		a.command = append([]string{"node"}, a.command...)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := s.unpack(ctx, fmt.Sprintf(s.spec, a.version), dir); err != nil {
		return fmt.Errorf("%s is neither in %s nor to be had from the npm registry: %w", a.pkg, l.cache, err)
	}
	return nil
}

func newestVersion(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "npm", "view", pkg, "version").Output()
	if err != nil {
		return "", fmt.Errorf("npm view %s: %w", pkg, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// unpack downloads a package, compares it with its checksum, and unpacks it into dir.
func (s *source) unpack(ctx context.Context, spec, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "get-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) // what is needed was moved
	fmt.Fprintln(os.Stderr, "getting", spec)
	err = runCommand(ctx, temp, "npm", "pack", "--loglevel", "error", "--cache", filepath.Join(temp, "cache"),
		"--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "5000", "--", spec)
	if err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(temp, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return errors.Join(err, fmt.Errorf("npm pack %s made %d archives", spec, len(archives)))
	}
	sum, err := checksum(archives[0])
	switch {
	case err != nil:
		return err
	case s.integrity != "" && sum != s.integrity:
		return fmt.Errorf("%s has the checksum %s instead of %s", spec, sum, s.integrity)
	}
	// The checksum, ours or that of npm, is the guard: tar unpacks links, too.
	files := filepath.Join(temp, "files")
	if err := errors.Join(os.Mkdir(files, 0o700), runCommand(ctx, files, "tar", "-xzf", archives[0])); err != nil {
		return err
	}
	if err := os.Rename(files, dir); err != nil && !errors.Is(err, os.ErrExist) { // another run may have got it meanwhile
		return err
	}
	return nil
}

// checksum is that of a file, as npm writes it.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // it was only read
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}
