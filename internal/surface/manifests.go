package surface

import (
	"context"
	"regexp"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// ManifestList is the JSON of a list of kept manifests.
type ManifestList struct {
	Manifests []manifest.Index `json:"manifests" jsonschema:"the newest manifests, newest last"`
}

// ListLimit is how many manifests are listed unless more are asked for.
const ListLimit = 50

// Latest is the word for the newest manifest.
const Latest = "latest"

// IsManifestID reports whether a word names a manifest of a store: "latest", or
// letters and digits that an id may begin with.
func IsManifestID(word string) bool {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	return word == Latest || word != "" && len(word) <= WholeID && strings.Trim(strings.ToUpper(word), alphabet) == ""
}

// WholeID is how long the id of a manifest is that is not shortened.
const WholeID = 26

// Finder finds kept manifests; a *store.Store is one.
type Finder interface {
	Get(ctx context.Context, id string) (*manifest.Manifest, error)
	Latest(ctx context.Context, f store.Filter) (*manifest.Manifest, error)
}

// Find returns a manifest by its id, the beginning of one, or "latest", which is
// the newest that the filter takes. The errors are the finder's.
func Find(ctx context.Context, in Finder, id string, f store.Filter) (*manifest.Manifest, error) {
	if id == Latest {
		return in.Latest(ctx, f)
	}
	return in.Get(ctx, id)
}

// headPattern is a hash as verify prints it.
var headPattern = regexp.MustCompile(`^(sha256|hmac-sha256):[0-9a-f]{64}$`)

// IsHead reports whether a text is the whole hash of a manifest. A shortened one
// would prove nothing.
func IsHead(hash string) bool { return headPattern.MatchString(hash) }
