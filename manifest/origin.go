package manifest

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// module is the path of the module that this package belongs to.
const module = "github.com/grapnelhq/grapnel"

// Build returns Grapnel's version and, where the program's build information has it, the revision: VERSION+REVISION,
// with "-dirty" behind it for sources that were changed. An empty version is that of the module.
func Build(version string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	if at := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == module }); version == "" && at >= 0 {
		return info.Deps[at].Version // the revision is the host's
	}
	if info.Main.Path != module {
		return version
	}
	if version == "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && !strings.Contains(version, "+"):
			version += "+" + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true" && !strings.HasSuffix(version, "dirty"):
			version += "-dirty"
		}
	}
	return version
}

// HashJSON returns the SHA-256 of a value's canonical JSON, with a key its HMAC; empty for what is no JSON.
func HashJSON(v any, key []byte) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	canonical, err := digest.JSON(nil, raw)
	if err != nil {
		return ""
	}
	return digest.Hash(key, canonical)
}
