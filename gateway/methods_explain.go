package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/store"
)

type explainParams struct {
	getParams

	ID       string `json:"id,omitempty"       jsonschema:"a section, subscription, plugin or tool"`
	Sentence string `json:"sentence,omitempty" jsonschema:"or a piece of the prompt, as it stands there, whose texts were kept"`
}

const maxKnown = 20 // bounds what a message lists

// explain answers as "grapnel explain --manifest" does. A hook that the turn did not run is looked up in the plan in
// force.
func (g *Gateway) explain(ctx context.Context, c call[explainParams]) (*explain.Result, error) {
	p := &c.params
	if (p.ID == "") == (p.Sentence == "") {
		return nil, rpc.Errorf(rpc.CodeInvalid, "give one of id and sentence")
	}
	list, err := g.readManifests(ctx, c.Caller, p.filter(), namedID{"manifest_id", p.ManifestID})
	if err != nil {
		return nil, err
	}
	turn, err := api.Turn(ctx, g.opts.Log, list[0])
	if err != nil {
		return nil, err
	}
	r := &explain.Record{Manifest: *turn}
	if g.opts.Engine != nil {
		r.Know(g.opts.Engine.Config(), g.opts.Engine.Descriptions())
	}
	var e *explain.Result
	if p.Sentence != "" {
		e, err = g.explainSentence(ctx, r, p.Sentence)
	} else {
		e, err = g.explainID(r, p.ID)
	}
	if err == nil && list[0].ManifestID != turn.ManifestID {
		e.Asked = list[0].ManifestID
	}
	return e, err
}

func (g *Gateway) explainID(r *explain.Record, id string) (*explain.Result, error) {
	e := r.About(id)
	if e == nil && g.opts.Engine != nil {
		e = r.Planned(g.opts.Engine.Plan("").Phases, id)
	}
	if e == nil {
		known := r.IDs()
		return nil, rpc.Errorf(rpc.CodeNotFound, "the manifest %s knows no section, subscription, plugin or tool %q%s; it knows: %s",
			r.ManifestID, id, suggest.DidYouMean(id, known), strings.Join(known[:min(len(known), maxKnown)], ", "))
	}
	return e, nil
}

func (g *Gateway) explainSentence(ctx context.Context, r *explain.Record, sentence string) (*explain.Result, error) {
	kept, err := g.textsWithin(ctx, &r.Manifest)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(kept.Sections, func(s sectionText) bool { return s.Text == nil }); i >= 0 {
		return nil, rpc.Errorf(rpc.CodeNotFound, "the text of the section %s is not there: %s", kept.Sections[i].ID, kept.Why)
	}
	texts := make([]string, len(kept.Sections)+len(r.Reminders))
	for i, s := range kept.Sections {
		texts[i] = *s.Text
	}
	for i := range r.Reminders {
		said, err := g.opts.Log.Text(ctx, r.Reminders[i].Hash)
		if err != nil && !store.HasCode(err, store.CodeNotFound) {
			return nil, err
		}
		texts[len(kept.Sections)+i] = said
	}
	return r.Sentence(sentence, texts), nil
}
