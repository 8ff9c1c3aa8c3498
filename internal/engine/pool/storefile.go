package pool

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// codeStoreExposed: the grants of a confined plugin cover the store's file.
const codeStoreExposed = "store_exposed"

// StoreExposed warns of confined plugins that may open the files of the configuration's embedded store. Reading is
// enough to block writers: a reader may take SQLite's fcntl locks.
func StoreExposed(cfg *config.Config) []phases.Diagnostic {
	file := cfg.StoreFile()
	if file == "" {
		return nil
	}
	file = realPath(file)
	var notes []phases.Diagnostic
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		box, err := Confinement(p)
		if err != nil {
			continue
		}
		for key, paths := range map[string][]string{"read": box.Policy.Read, "write": box.Policy.Write} {
			if slices.ContainsFunc(paths, func(path string) bool { return opens(realPath(path), file) }) {
				notes = append(notes, phases.Diagnostic{
					Code: codeStoreExposed, Severity: phases.SeverityWarning, Plugin: p.Name, Slot: "grants." + key,
					Message: "the plugin " + p.Name + " may open the store " + file + ": it can read all that is kept, and keep others from writing; keep the store outside of its grants",
				})
				break
			}
		}
	}
	return notes
}

// opens reports whether a grant of path covers an SQLite database or a file beside it.
func opens(path, database string) bool {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if path == database+suffix {
			return true
		}
	}
	return strings.HasPrefix(database, strings.TrimSuffix(path, "/")+"/")
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(realPath(dir), filepath.Base(path))
	}
	return path
}
