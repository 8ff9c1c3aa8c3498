package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// rowBytes is what a row of a list takes, with its JSON.
const rowBytes = 1 << 10

// What a manifest takes: manifestFactor times its record, which is read, decoded,
// compared or hashed, and written as an answer; and answerBytes besides.
const (
	manifestFactor = 6
	answerBytes    = 256 << 10
)

const (
	// maxList is how many manifests a list has at most.
	maxList = 1000
	// methodVerify reads whole logs, and verifyTime is how long it may.
	methodVerify = "manifest/verify"
	verifyTime   = time.Minute
)

// manifestFilter says which manifests are meant, as the flags of the commands do.
type manifestFilter struct {
	WorkspaceID string `json:"workspace_id,omitempty" jsonschema:"only manifests of this workspace; a token that is bound to workspaces names one"`
	ThreadID    string `json:"thread_id,omitempty"    jsonschema:"only manifests of this thread"`
	Actor       string `json:"actor,omitempty"`
}

// The params of the methods about manifests.
type (
	listParams struct {
		manifestFilter

		Limit int `json:"limit,omitempty" jsonschema:"the newest so many: 50 if absent, 1000 at most"`
	}
	getParams struct {
		manifestFilter

		ManifestID string `json:"manifest_id" jsonschema:"an id, which may be shortened, or the word latest"`
	}
	diffParams struct {
		manifestFilter

		A string `json:"a" jsonschema:"the earlier manifest: an id, which may be shortened, or the word latest"`
		B string `json:"b" jsonschema:"the later one"`
	}
	verifyParams struct {
		manifestFilter

		Head         string `json:"head,omitempty"          jsonschema:"the hash of a manifest that must be there, as kept from an earlier verify"`
		Text         string `json:"text,omitempty"          jsonschema:"a text that some manifest must have the fingerprint of"`
		AllowUnkeyed bool   `json:"allow_unkeyed,omitempty" jsonschema:"with a key: take threads whose last manifest is from before there was one"`
	}
)

func (g *Gateway) manifestMethods() []rpc.Method {
	return []rpc.Method{
		logged(g, "manifest/list", "Lists the newest kept manifests, newest last, as \"grapnel manifest list\" does.",
			func(p *listParams) *manifestFilter { return &p.manifestFilter }, g.listManifests),
		logged(g, "manifest/get", "Reads a kept manifest.",
			func(p *getParams) *manifestFilter { return &p.manifestFilter },
			func(ctx context.Context, c call[getParams]) (*manifest.Manifest, error) {
				list, err := g.readManifests(ctx, c.Caller, c.params.filter(), namedID{"manifest_id", c.params.ManifestID})
				if err != nil {
					return nil, err
				}
				return list[0], nil
			}),
		logged(g, "manifest/diff", "Compares two kept manifests, as \"grapnel manifest diff\" does.",
			func(p *diffParams) *manifestFilter { return &p.manifestFilter }, g.diffManifests),
		logged(g, methodVerify, "Checks that the log is whole, as \"grapnel manifest verify\" does. A log that is broken is a result that says so.",
			func(p *verifyParams) *manifestFilter { return &p.manifestFilter }, g.verifyManifests),
	}
}

// logged is method for work on the log. A token that is bound to workspaces sees
// manifests of those, and has to say which: the log is not searched for it.
func logged[P, R any](g *Gateway, name, doc string, filter func(*P) *manifestFilter, do func(ctx context.Context, c call[P]) (R, error)) rpc.Method {
	ask := func(p *P) asked { return asked{nil, &filter(p).Actor} }
	return method(name, rpc.ReadRight, doc, ask, func(ctx context.Context, c call[P]) (R, error) {
		var none R
		switch f := filter(&c.params); {
		case f.WorkspaceID == "" && !c.AllWorkspaces():
			return none, rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces: give the workspace_id")
		case f.WorkspaceID != "" && !c.MayWorkspace(f.WorkspaceID):
			return none, noWorkspace(f.WorkspaceID)
		case g.opts.Log == nil:
			return none, rpc.Errorf(rpc.CodeUnavailable, "this gateway keeps no manifests")
		}
		return do(ctx, c)
	})
}

// filter is what the store takes.
func (f *manifestFilter) filter() store.Filter {
	return store.Filter{Workspace: f.WorkspaceID, Thread: f.ThreadID}
}

func (g *Gateway) listManifests(ctx context.Context, c call[listParams]) (surface.ManifestList, error) {
	filter := c.params.filter()
	filter.Limit = cmp.Or(c.params.Limit, surface.ListLimit)
	if filter.Limit < 1 || filter.Limit > maxList {
		return surface.ManifestList{}, rpc.Errorf(rpc.CodeInvalid, "limit: %d is not between 1 and %d", filter.Limit, maxList)
	}
	if err := rpc.Expect(ctx, filter.Limit*rowBytes); err != nil {
		return surface.ManifestList{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := g.opts.Log.List(ctx, filter)
	return surface.ManifestList{Manifests: list}, err
}

// readManifests returns manifests that the caller may see and the filter takes, once
// there is memory for all of them.
func (g *Gateway) readManifests(ctx context.Context, c *rpc.Caller, f store.Filter, ids ...namedID) ([]*manifest.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, bytes := make([]*manifest.Manifest, len(ids)), 0
	for i, id := range ids {
		found, err := g.findManifest(ctx, c, id, f)
		if err != nil {
			return nil, err
		}
		ids[i].value = found.ManifestID
		bytes += found.Bytes
	}
	if err := rpc.Expect(ctx, answerBytes+bytes*manifestFactor); err != nil {
		return nil, err
	}
	for i, id := range ids {
		var err error
		if list[i], err = g.opts.Log.Get(ctx, id.value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// findManifest returns which manifest is meant. Whole ids only are taken of who does not
// see all: that a shortened one has several meanings would tell of manifests that are
// not theirs.
func (g *Gateway) findManifest(ctx context.Context, c *rpc.Caller, id namedID, f store.Filter) (store.Found, error) {
	switch {
	case !surface.IsManifestID(id.value):
		return store.Found{}, rpc.Errorf(rpc.CodeInvalid, "%s: %q is no manifest's id, nor the beginning of one, nor the word %s", id.name, id.value, surface.Latest)
	case id.value != surface.Latest && len(id.value) < surface.WholeID && !c.AllWorkspaces():
		return store.Found{}, rpc.Errorf(rpc.CodeInvalid, "%s: this token is bound to workspaces, and gives whole ids", id.name)
	}
	word := id.value
	if word == surface.Latest {
		word = ""
	}
	found, err := g.opts.Log.Find(ctx, word, f)
	if err == nil && (f.Workspace != "" && found.WorkspaceID != f.Workspace || f.Thread != "" && found.ThreadID != f.Thread) {
		return store.Found{}, noManifest()
	}
	return found, err
}

func (g *Gateway) diffManifests(ctx context.Context, c call[diffParams]) (manifest.Difference, error) {
	both, err := g.readManifests(ctx, c.Caller, c.params.filter(), namedID{"a", c.params.A}, namedID{"b", c.params.B})
	if err != nil {
		return manifest.Difference{}, err
	}
	return manifest.Diff(both[0], both[1]), nil
}

// verifyManifests reads the whole log if need be, until the caller goes away or its
// time is up. A log that is broken for certain is a result, whatever else could not
// be told.
func (g *Gateway) verifyManifests(ctx context.Context, c call[verifyParams]) (manifest.Verdict, error) {
	p := &c.params
	if p.Head != "" && !surface.IsHead(p.Head) {
		return manifest.Verdict{}, rpc.Errorf(rpc.CodeInvalid, "head: give a whole hash, as verify prints it: sha256: and 64 digits")
	}
	o := manifest.VerifyOptions{Head: p.Head, AllowUnkeyed: p.AllowUnkeyed}
	if p.Text != "" {
		o.Texts = []string{p.Text}
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	verdict, err := g.opts.Log.Verify(ctx, p.filter(), o)
	if errors.Is(err, context.DeadlineExceeded) && len(verdict.Problems) == 0 {
		return manifest.Verdict{}, &rpc.Error{Code: rpc.CodeUnavailable, Err: err, Message: fmt.Sprintf(
			"verify: the log is too long for one call of %s: give workspace_id or thread_id, or run \"grapnel manifest verify\" at the database", verifyTime)}
	}
	if err != nil && len(verdict.Problems) == 0 {
		return manifest.Verdict{}, fmt.Errorf("verify: %w", err)
	}
	if verdict.Checked == 0 && len(verdict.Problems) == 0 && p.filter() != (store.Filter{}) {
		return manifest.Verdict{}, rpc.Errorf(rpc.CodeNotFound, "there are no such manifests to verify")
	}
	verdict.OK = verdict.OK && err == nil
	return verdict, nil
}
