package gateway

import (
	"cmp"
	"context"
	"fmt"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/tree"
)

// The params of methods that read documents: those of the tree, and who reads.
type (
	scopeParams struct {
		tree.Scope

		Actor string `json:"actor,omitempty"`
	}
	threadParams struct {
		tree.ThreadRef

		Actor string `json:"actor,omitempty"`
	}
	revisionsParams struct {
		tree.RevisionQuery

		Actor string `json:"actor,omitempty"`
	}
	archivedParams struct {
		tree.ArchivedQuery

		Actor string `json:"actor,omitempty"`
	}
)

// The results of methods about documents that the tree has no type for.
type (
	// savedResult is a saved document, and what the one who saved it should know.
	savedResult struct {
		tree.Saved

		Warnings []warning `json:"warnings"`
	}
	warning struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	effectiveResult struct {
		Effective *tree.Effective `json:"effective"`
	}
	docResult struct {
		Doc tree.Doc `json:"doc"`
	}
	revisionsResult struct {
		Revisions []tree.Revision `json:"revisions" jsonschema:"newest first"`
	}
	archivedResult struct {
		Archived []tree.ArchivedDoc `json:"archived" jsonschema:"the one that was archived last first"`
	}
)

// warnPromptCut says that a prompt will not have all of a document.
const warnPromptCut = "longer_than_prompt"

func (g *Gateway) docMethods() []rpc.Method {
	t := g.opts.Tree
	return []rpc.Method{
		quick("thread/agents_doc/get", rpc.ReadRight, "Reads the document of a scope (a folder, or null for the root), drafts included, and the one in effect there.",
			func(p *scopeParams) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p scopeParams) (tree.View, error) { return t.Doc(ctx, p.Scope) }),
		quick("thread/agents_doc/save", rpc.WriteRight,
			"Saves the document of a scope. expected_version is the version that the text is based on; 0 or absent for a new document. A version_conflict says what there is instead.",
			func(p *tree.Save) asked { return asked{&p.WorkspaceID, &p.Actor} }, g.save),
		quick("thread/agents_doc/archive", rpc.WriteRight, "Puts the document of a scope away, and says what is in effect then.",
			func(p *tree.ArchiveDoc) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
				now, err := t.Archive(ctx, p)
				g.metrics.save("archived", err)
				return now, err
			}),
		quick("thread/agents_doc/resolve_for_thread", rpc.ReadRight, "Finds the document in effect for a thread.",
			func(p *threadParams) asked { return asked{&p.WorkspaceID, &p.Actor} }, g.resolve),
		quick("thread/agents_doc/revisions", rpc.ReadRight, "Lists versions of a document, newest first.",
			func(p *revisionsParams) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p revisionsParams) (revisionsResult, error) {
				list, err := listed(ctx, p.IncludeContent, p.Limit, func(r *tree.Revision) int { return r.Chars }, func(texts bool) ([]tree.Revision, error) {
					p.IncludeContent = texts
					return t.Revisions(ctx, p.RevisionQuery)
				})
				return revisionsResult{list}, err
			}),
		quick("thread/agents_doc/restore", rpc.WriteRight, "Makes the text of an earlier version the document's newest one; an archived document comes back to life.",
			func(p *tree.RestoreDoc) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.RestoreDoc) (docResult, error) {
				doc, err := t.Restore(ctx, p)
				g.metrics.save("restored", err)
				return docResult{doc}, err
			}),
		quick("thread/agents_doc/archived", rpc.ReadRight, "Lists documents that were put away: those of a scope, or with all those of every scope.",
			func(p *archivedParams) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p archivedParams) (archivedResult, error) {
				list, err := listed(ctx, p.IncludeContent, p.Limit, func(d *tree.ArchivedDoc) int { return d.Chars }, func(texts bool) ([]tree.ArchivedDoc, error) {
					p.IncludeContent = texts
					return t.ArchivedDocs(ctx, p.ArchivedQuery)
				})
				return archivedResult{list}, err
			}),
	}
}

// maxTexts is how many characters the texts of a list may have together, and
// charBytes what a character takes at most: as text, and as JSON with its buffer. A
// list of so many is within [rpc.Limits.Answer].
const (
	maxTexts  = 40 * tree.MaxChars
	charBytes = 4 + 6
)

// listed asks for a list. One with texts is asked for without them first, and refused
// if they are too much for one answer; else memory for them is reserved.
func listed[T any](ctx context.Context, texts bool, limit int, chars func(*T) int, ask func(texts bool) ([]T, error)) ([]T, error) {
	if !texts {
		return ask(false)
	}
	list, err := ask(false)
	if err != nil {
		return nil, err
	}
	sum := 0
	for i := range list {
		sum += chars(&list[i])
	}
	if sum > maxTexts {
		return nil, rpc.Errorf(rpc.CodeTooLarge, "limit: the texts have %s characters together, and an answer has room for %s: ask for fewer than %d at once",
			text.Thousands(sum), text.Thousands(maxTexts), cmp.Or(limit, tree.DefaultLimit))
	}
	if err := rpc.Expect(ctx, sum*charBytes); err != nil {
		return nil, err
	}
	return ask(true)
}

// save warns where a prompt will not have all of the text.
func (g *Gateway) save(ctx context.Context, p tree.Save) (savedResult, error) {
	saved, err := g.opts.Tree.Save(ctx, p)
	if err != nil {
		g.metrics.save("", err)
		return savedResult{}, err
	}
	outcome := "saved"
	if saved.Unchanged {
		outcome = "unchanged"
	}
	g.metrics.save(outcome, nil)
	return savedResult{saved, g.warnings(&saved.Doc)}, nil
}

// warnings are never nil.
func (g *Gateway) warnings(doc *tree.Doc) []warning {
	list := []warning{}
	if n, most := tree.Chars(doc.Content), g.settings.Load().promptChars; most > 0 && n > most {
		list = append(list, warning{warnPromptCut, fmt.Sprintf("the text has %s characters, and a prompt has room for %s: the end will be cut off",
			text.Thousands(n), text.Thousands(most))})
	}
	return list
}

// resolve knows threads of the tree only; [Documents] takes others as unplaced.
func (g *Gateway) resolve(ctx context.Context, p threadParams) (effectiveResult, error) {
	found, err := g.opts.Tree.Resolve(ctx, p.ThreadRef)
	if err != nil {
		return effectiveResult{}, err
	}
	if !found.Known {
		return effectiveResult{}, rpc.Errorf(rpc.CodeNotFound, "there is no thread %q in the workspace %q", p.ThreadID, p.WorkspaceID)
	}
	return effectiveResult{found.Effective}, nil
}
