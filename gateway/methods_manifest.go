package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

const (
	rowBytes      = 1 << 10 // the JSON of a list's row
	outlineFactor = 8       // an outline in memory takes so many rows
)

// A manifest takes manifestFactor times its record (read, decoded, compared or hashed, and
// encoded), and answerBytes besides.
const (
	manifestFactor = 6
	answerBytes    = 256 << 10
)

const (
	maxTerms     = 64
	searchBytes  = 16 << 20 // for the numbers of a million records
	maxList      = 1000
	methodVerify = "manifest/verify" // reads whole logs, for verifyTime at most
	methodFind   = "manifest/find"
	methodStats  = "manifest/stats" // as verify
	verifyTime   = time.Minute
)

// manifestFilter selects manifests, as the flags of the commands do. The workspace is optional,
// and checked by logged.
type manifestFilter struct {
	Workspace string `json:"workspace_id,omitempty" jsonschema:"only manifests of this workspace; a token that is bound to workspaces names one"`
	ThreadID  string `json:"thread_id,omitempty"    jsonschema:"only manifests of this thread"`
	Actor     string `json:"actor,omitempty"`
}

type (
	listParams struct {
		manifestFilter

		Limit int `json:"limit,omitempty" jsonschema:"the newest so many: 50 if absent, 1000 at most"`
	}
	getParams struct {
		manifestFilter

		ManifestID string `json:"manifest_id" jsonschema:"an id, which may be shortened, or the word latest"`
	}
	blameParams struct {
		manifestFilter

		Limit int `json:"limit,omitempty" jsonschema:"the newest so many prompts: 100 if absent, 1000 at most"`
	}
	findParams struct {
		manifestFilter

		Sentence string          `json:"sentence,omitempty"  jsonschema:"a piece of a kept text: blanks and line ends count as one blank, and case counts"`
		AnyOrder bool            `json:"any_order,omitempty" jsonschema:"finds texts with all words of the sentence, in any order and case"`
		Text     string          `json:"text,omitempty"      jsonschema:"a whole section with its heading, or a whole prompt: it is found by its hash, kept or not"`
		Terms    []manifest.Term `json:"terms,omitempty"     jsonschema:"what a manifest must have, all of them: the kinds are the flags of \"grapnel manifest find\""`
		Since    time.Time       `json:"since,omitzero"      jsonschema:"only manifests from this time on"`
		Until    time.Time       `json:"until,omitzero"      jsonschema:"only manifests from before this time"`
		Limit    int             `json:"limit,omitempty"     jsonschema:"the newest so many: 50 if absent, 1000 at most"`
	}
	statsParams struct {
		manifestFilter

		Since time.Time `json:"since,omitzero" jsonschema:"only manifests from this time on"`
		Until time.Time `json:"until,omitzero" jsonschema:"only manifests from before this time"`
	}
	diffParams struct {
		manifestFilter

		A string `json:"a" jsonschema:"the earlier manifest: an id, which may be shortened, or the word latest"`
		B string `json:"b" jsonschema:"the later one"`
	}
	verifyParams struct {
		manifestFilter

		Head         string `json:"head,omitempty"          jsonschema:"the hash of a manifest that must be there, as kept from an earlier verify"`
		Text         string `json:"text,omitempty"          jsonschema:"a text that some manifest must have the hash of"`
		AllowUnkeyed bool   `json:"allow_unkeyed,omitempty" jsonschema:"with a key: take threads whose last manifest is from before there was one"`
	}
)

// getResult is a manifest, and what the provider reported of its prompt.
type getResult struct {
	*manifest.Manifest

	Usage *manifest.Usage `json:"usage,omitempty" jsonschema:"what the provider reported of this prompt; absent where nothing was"`
}

func (g *Gateway) manifestMethods() []rpc.Method {
	return []rpc.Method{
		logged(g, "manifest/list", "Lists the newest kept manifests, newest last, as \"grapnel manifest list\" does.", g.listManifests),
		logged(g, "manifest/get", "Reads a kept manifest.", func(ctx context.Context, c call[getParams]) (got getResult, err error) {
			list, err := g.readManifests(ctx, c.Caller, c.params.filter(), namedID{"manifest_id", c.params.ManifestID})
			if err != nil {
				return got, err
			}
			got.Manifest = list[0]
			got.Usage, err = g.judge(ctx, list[0])
			return got, err
		}),
		logged(g, "manifest/text", "Reads the texts of a kept prompt, section by section, as far as they were kept.", g.textOf),
		logged(g, "manifest/explain", "Says why a section, subscription, plugin or tool is, or is not, in a kept prompt, or who wrote a sentence of it, as \"grapnel explain\" does.", g.explain),
		logged(g, "manifest/diff", "Compares two kept manifests, as \"grapnel manifest diff\" does.", g.diffManifests),
		logged(g, methodFind, "Finds the kept manifests whose prompt holds a sentence, or that have all the terms, as \"grapnel manifest find\" does.", g.searchManifests),
		logged(g, methodStats, "Adds up tokens, cuts, failures and cache hits, as \"grapnel manifest stats\" does.", g.addUpManifests),
		logged(g, "manifest/blame", "Says what broke the provider's prompt cache in a thread, as \"grapnel manifest blame\" does.", g.blameManifests),
		logged(g, methodVerify, "Checks that the log is whole, as \"grapnel manifest verify\" does. A broken log is a result that says so.", g.verifyManifests),
	}
}

// logged is method for work on the log. A token that is bound to workspaces must name one: the
// log is not searched for them.
func logged[P interface{ filter() store.Filter }, R any](g *Gateway, name, doc string, do func(ctx context.Context, c call[P]) (R, error)) rpc.Method {
	return method(name, rpc.ReadRight, doc, func(ctx context.Context, c call[P]) (R, error) {
		var none R
		switch id := c.params.filter().Workspace; {
		case id == "" && !c.AllWorkspaces():
			return none, rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces: give the workspace_id")
		case !c.MayWorkspace(id):
			return none, noWorkspace(id)
		case g.opts.Log == nil:
			return none, rpc.Errorf(rpc.CodeUnavailable, "this gateway keeps no manifests")
		}
		return do(ctx, c)
	})
}

func (f manifestFilter) filter() store.Filter {
	return store.Filter{Workspace: f.Workspace, Thread: f.ThreadID}
}

func (g *Gateway) listManifests(ctx context.Context, c call[listParams]) (api.ManifestList, error) {
	filter := c.params.filter()
	filter.Limit = cmp.Or(c.params.Limit, api.ListLimit)
	if filter.Limit < 1 || filter.Limit > maxList {
		return api.ManifestList{}, rpc.Errorf(rpc.CodeInvalid, "limit: %d is not between 1 and %d", filter.Limit, maxList)
	}
	if err := rpc.Expect(ctx, filter.Limit*rowBytes); err != nil {
		return api.ManifestList{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return api.List(ctx, g.opts.Log, filter)
}

func (g *Gateway) searchManifests(ctx context.Context, c call[findParams]) (store.SearchResult, error) {
	p := &c.params
	q := store.Query{Filter: p.filter(), Terms: p.Terms, Sentence: p.Sentence, AnyOrder: p.AnyOrder, Text: p.Text, Since: p.Since, Until: p.Until}
	q.Limit = cmp.Or(p.Limit, api.ListLimit)
	switch {
	case q.Limit < 1 || q.Limit > maxList:
		return store.SearchResult{}, rpc.Errorf(rpc.CodeInvalid, "limit: %d is not between 1 and %d", q.Limit, maxList)
	case len(p.Terms) > maxTerms:
		return store.SearchResult{}, rpc.Errorf(rpc.CodeInvalid, "terms: %d are more than %d", len(p.Terms), maxTerms)
	}
	if err := rpc.Expect(ctx, searchBytes+q.Limit*rowBytes); err != nil {
		return store.SearchResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return g.opts.Log.Search(ctx, q)
}

// addUpManifests reads up to the whole log, while the caller waits.
func (g *Gateway) addUpManifests(ctx context.Context, c call[statsParams]) (manifest.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	stats, err := g.opts.Log.Stats(ctx, c.params.filter(), c.params.Since, c.params.Until, func() {})
	if errors.Is(err, context.DeadlineExceeded) {
		return stats, &rpc.Error{Code: rpc.CodeUnavailable, Err: err, Message: fmt.Sprintf(
			"stats: that are too many manifests for one call of %s: bound the time, or run \"grapnel manifest stats\" at the database", verifyTime)}
	}
	return stats, err
}

func (g *Gateway) blameManifests(ctx context.Context, c call[blameParams]) (api.Blame, error) {
	filter := c.params.filter()
	filter.Limit = cmp.Or(c.params.Limit, api.BlameLimit)
	switch {
	case filter.Thread == "":
		return api.Blame{}, rpc.Errorf(rpc.CodeInvalid, "thread_id: blame is about one thread")
	case filter.Limit < 1 || filter.Limit > maxList:
		return api.Blame{}, rpc.Errorf(rpc.CodeInvalid, "limit: %d is not between 1 and %d", filter.Limit, maxList)
	}
	if err := rpc.Expect(ctx, filter.Limit*rowBytes*outlineFactor); err != nil {
		return api.Blame{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return api.BlameOf(g.opts.Log.Entries(ctx, filter), filter.Limit, func() {})
}

// judge fills in what the provider reported, and what follows from it.
func (g *Gateway) judge(ctx context.Context, m *manifest.Manifest) (*manifest.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return g.opts.Log.Judge(ctx, m)
}

// readManifests reads the selected manifests once it has memory for all of them.
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

// findManifest finds a manifest. Callers who do not see all of them must give whole ids: an
// ambiguous short one would reveal others' manifests.
func (g *Gateway) findManifest(ctx context.Context, c *rpc.Caller, id namedID, f store.Filter) (store.Found, error) {
	switch {
	case !api.IsManifestID(id.value):
		return store.Found{}, rpc.Errorf(rpc.CodeInvalid, "%s: %q is not a manifest's id, the beginning of one, or the word %s", id.name, id.value, api.Latest)
	case id.value != api.Latest && len(id.value) < api.WholeID && !c.AllWorkspaces():
		return store.Found{}, rpc.Errorf(rpc.CodeInvalid, "%s: this token is bound to workspaces, and gives whole ids", id.name)
	}
	word := id.value
	if word == api.Latest {
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
	var usages [2]*manifest.Usage
	for i, m := range both {
		if usages[i], err = g.judge(ctx, m); err != nil {
			return manifest.Difference{}, err
		}
	}
	return manifest.Diff(both[0], both[1], usages[0], usages[1]), nil
}

// verifyManifests reads up to the whole log, while the caller waits. A log that is certainly
// broken is a result, even if reading failed later.
func (g *Gateway) verifyManifests(ctx context.Context, c call[verifyParams]) (manifest.Verdict, error) {
	p := &c.params
	if p.Head != "" && !api.IsHead(p.Head) {
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
