package chain

import (
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// isTrusted judges the root. A word that is not known trusts nobody.
func (r *resolver) isTrusted() bool {
	switch r.chain.Options.Trust {
	case option.TrustAll, "":
		return true
	case option.TrustListed:
		return len(r.tree) > 0 && slices.ContainsFunc(r.allowedFolders(), func(dir string) bool {
			return within(dir, r.tree[0].real)
		})
	default:
		return false
	}
}

// distrusted reports whether files of the scope come from unknown hands.
func (r *resolver) distrusted(s Scope) bool { return !r.trusted && !s.userWide() }

// withhold leaves of a source of a root that is not trusted only its name.
func (r *resolver) withhold(src *Source) {
	src.State, src.Reason = StateSkipped, string(CodeUntrustedRoot)
	r.report(diagnostic(CodeUntrustedRoot, src.Path, "its root is not trusted, so only its name is told"))
}

// allowedFolders are the real paths of the folders that the options allow. They
// are looked up when they are first needed.
func (r *resolver) allowedFolders() []string {
	if r.allowed != nil {
		return *r.allowed
	}
	r.allowed = new([]string)
	for _, path := range r.chain.Options.Allow {
		if !filepath.IsAbs(path) {
			continue
		}
		if real, err := r.view.RealPath(filepath.Clean(path)); err == nil {
			*r.allowed = append(*r.allowed, real)
		}
	}
	return *r.allowed
}
