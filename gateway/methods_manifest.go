package gateway

import (
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
	methodStats  = "manifest/stats"  // as verify
	verifyTime   = time.Minute
)

// manifestFilter selects manifests, as the flags of the commands do.
type manifestFilter struct {
	WorkspaceID string `json:"workspace_id,omitempty" jsonschema:"only manifests of this workspace; a token that is bound to workspaces names one"`
	ThreadID    string `json:"thread_id,omitempty"    jsonschema:"only manifests of this thread"`
	Actor       string `json:"actor,omitempty"`
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

// manifestMethods are for the log of manifests.
type manifestMethods struct {
	log    Log
	engine Engine // nil for none
	kept   *keptWatch
}

func (m *manifestMethods) list() []rpc.Method {
	of := group{optional: true, within: callTime}.unless(m.log == nil, "this gateway keeps no manifests")
	long := of // reads up to the whole log, while the caller waits
	long.within = verifyTime
	watch := of
	watch.connected = true
	return []rpc.Method{
		method(of, "manifest/list", rpc.ReadRight, "Lists the newest kept manifests, newest last, as \"grapnel manifest list\" does.", m.newest),
		method(of, "manifest/get", rpc.ReadRight, "Reads a kept manifest.", m.get),
		method(of, "manifest/text", rpc.ReadRight, "Reads the texts of a kept prompt, section by section, as far as they were kept.", m.texts),
		method(of, "manifest/explain", rpc.ReadRight, "Says why a section, subscription, plugin or tool is, or is not, in a kept prompt, or who wrote a sentence of it, as \"grapnel explain\" does.", m.explain),
		method(of, "manifest/diff", rpc.ReadRight, "Compares two kept manifests, as \"grapnel manifest diff\" does.", m.diff),
		method(of, "manifest/find", rpc.ReadRight, "Finds the kept manifests whose prompt holds a sentence, or that have all the terms, as \"grapnel manifest find\" does.", m.search),
		method(long, methodStats, rpc.ReadRight, "Adds up tokens, cuts, failures and cache hits, as \"grapnel manifest stats\" does.", m.stats),
		method(of, "manifest/blame", rpc.ReadRight, "Says what broke the provider's prompt cache in a thread, as \"grapnel manifest blame\" does.", m.blame),
		method(long, methodVerify, rpc.ReadRight, "Checks that the log is whole, as \"grapnel manifest verify\" does. A broken log is a result that says so.", m.verify),
		method(of, "manifest/overview", rpc.ReadRight, "Lists kept manifests page by page, newest first, each with tokens, cache, failures, cuts and diagnostics.", m.overview),
		method(of, "manifest/threads", rpc.ReadRight, "Lists the threads that have manifests.", m.threads),
		method(watch, "manifest/watch", rpc.ReadRight,
			"Sends "+notifyKept+" for new manifests over this connection, also for those of other gateways on the database: watch first, then read the overview. A manifest may come twice.",
			m.watch),
		method(watch, "manifest/unwatch", rpc.ReadRight, "Stops that. Without a workspace all watches of this connection for manifests end.", m.unwatch),
	}
}

func (m *manifestMethods) get(ctx context.Context, c call[getParams]) (got getResult, err error) {
	list, err := m.read(ctx, c.Caller, c.params.filter(), namedID{"manifest_id", c.params.ManifestID})
	if err != nil {
		return got, err
	}
	got.Manifest = list[0]
	got.Usage, err = m.log.Judge(ctx, list[0])
	return got, err
}

func (f manifestFilter) filter() store.Filter {
	return store.Filter{Workspace: f.WorkspaceID, Thread: f.ThreadID}
}

func (m *manifestMethods) newest(ctx context.Context, c call[listParams]) (list api.ManifestList, err error) {
	filter := c.params.filter()
	if filter.Limit, err = limitOf(c.params.Limit, api.ListLimit, maxList); err == nil {
		err = rpc.Expect(ctx, filter.Limit*rowBytes)
	}
	if err != nil {
		return list, err
	}
	return api.List(ctx, m.log, filter)
}

func (m *manifestMethods) search(ctx context.Context, c call[findParams]) (found store.SearchResult, err error) {
	p := &c.params
	q := store.Query{Filter: p.filter(), Terms: p.Terms, Sentence: p.Sentence, AnyOrder: p.AnyOrder, Text: p.Text, Since: p.Since, Until: p.Until}
	if len(p.Terms) > maxTerms {
		return found, rpc.Errorf(rpc.CodeInvalid, "terms: %d are more than %d", len(p.Terms), maxTerms)
	}
	if q.Limit, err = limitOf(p.Limit, api.ListLimit, maxList); err == nil {
		err = rpc.Expect(ctx, searchBytes+q.Limit*rowBytes)
	}
	if err != nil {
		return found, err
	}
	return m.log.Search(ctx, q)
}

func (m *manifestMethods) stats(ctx context.Context, c call[statsParams]) (manifest.Stats, error) {
	stats, err := m.log.Stats(ctx, c.params.filter(), c.params.Since, c.params.Until, func() {})
	if errors.Is(err, context.DeadlineExceeded) {
		return stats, &rpc.Error{Code: rpc.CodeUnavailable, Err: err, Message: fmt.Sprintf(
			"stats: that are too many manifests for one call of %s: bound the time, or run \"grapnel manifest stats\" at the database", verifyTime)}
	}
	return stats, err
}

func (m *manifestMethods) blame(ctx context.Context, c call[blameParams]) (blame api.Blame, err error) {
	filter := c.params.filter()
	if filter.Thread == "" {
		return blame, rpc.Errorf(rpc.CodeInvalid, "thread_id: blame is about one thread")
	}
	if filter.Limit, err = limitOf(c.params.Limit, api.BlameLimit, maxList); err == nil {
		err = rpc.Expect(ctx, filter.Limit*rowBytes*outlineFactor)
	}
	if err != nil {
		return blame, err
	}
	return api.BlameOf(m.log.Entries(ctx, filter), filter.Limit, func() {})
}

// read reads the selected manifests once it has memory for all of them.
func (m *manifestMethods) read(ctx context.Context, c *rpc.Caller, f store.Filter, ids ...namedID) ([]*manifest.Manifest, error) {
	list, bytes := make([]*manifest.Manifest, len(ids)), 0
	for i, id := range ids {
		found, err := m.find(ctx, c, id, f)
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
		if list[i], err = m.log.Get(ctx, id.value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// find finds a manifest. Callers who do not see all of them must give whole ids: an
// ambiguous short one would reveal others' manifests.
func (m *manifestMethods) find(ctx context.Context, c *rpc.Caller, id namedID, f store.Filter) (store.Found, error) {
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
	found, err := m.log.Find(ctx, word, f)
	if err == nil && (f.Workspace != "" && found.WorkspaceID != f.Workspace || f.Thread != "" && found.ThreadID != f.Thread) {
		return store.Found{}, noManifest()
	}
	return found, err
}

func (m *manifestMethods) diff(ctx context.Context, c call[diffParams]) (manifest.Difference, error) {
	both, err := m.read(ctx, c.Caller, c.params.filter(), namedID{"a", c.params.A}, namedID{"b", c.params.B})
	if err != nil {
		return manifest.Difference{}, err
	}
	var usages [2]*manifest.Usage
	for i, one := range both {
		if usages[i], err = m.log.Judge(ctx, one); err != nil {
			return manifest.Difference{}, err
		}
	}
	return manifest.Diff(both[0], both[1], usages[0], usages[1]), nil
}

// verify takes a log that is certainly broken for a result, even if reading failed later.
func (m *manifestMethods) verify(ctx context.Context, c call[verifyParams]) (manifest.Verdict, error) {
	p := &c.params
	if p.Head != "" && !api.IsHead(p.Head) {
		return manifest.Verdict{}, rpc.Errorf(rpc.CodeInvalid, "head: give a whole hash, as verify prints it: sha256: and 64 digits")
	}
	o := manifest.VerifyOptions{Head: p.Head, AllowUnkeyed: p.AllowUnkeyed}
	if p.Text != "" {
		o.Texts = []string{p.Text}
	}
	verdict, err := m.log.Verify(ctx, p.filter(), o)
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
