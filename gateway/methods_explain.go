package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
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
func (m *manifestMethods) explain(ctx context.Context, c call[explainParams]) (*explain.Result, error) {
	p := &c.params
	if (p.ID == "") == (p.Sentence == "") {
		return nil, rpc.Errorf(rpc.CodeInvalid, "give one of id and sentence")
	}
	list, err := m.read(ctx, c.Caller, p.filter(), namedID{"manifest_id", p.ManifestID})
	if err != nil {
		return nil, err
	}
	turn, err := api.Turn(ctx, m.log, list[0])
	if err != nil {
		return nil, err
	}
	r := &explain.Record{Manifest: *turn.WithMessages()}
	if m.engine != nil {
		r.Know(m.engine.Config(), m.engine.Descriptions())
	}
	var e *explain.Result
	if p.Sentence != "" {
		e, err = m.explainSentence(ctx, r, p.Sentence)
	} else {
		e, err = m.explainID(r, p.ID)
	}
	if err == nil && list[0].ManifestID != turn.ManifestID {
		e.Asked = list[0].ManifestID
	}
	return e, err
}

func (m *manifestMethods) explainID(r *explain.Record, id string) (*explain.Result, error) {
	e := r.About(id)
	if e == nil && m.engine != nil {
		e = r.Planned(m.engine.Plan("").Phases, id)
	}
	if e == nil {
		known := r.IDs()
		return nil, rpc.Errorf(rpc.CodeNotFound, "the manifest %s knows no section, subscription, plugin or tool %q%s; it knows: %s",
			r.ManifestID, id, suggest.DidYouMean(id, known), strings.Join(known[:min(len(known), maxKnown)], ", "))
	}
	return e, nil
}

func (m *manifestMethods) explainSentence(ctx context.Context, r *explain.Record, sentence string) (*explain.Result, error) {
	kept, err := m.textsWithin(ctx, &r.Manifest)
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
		said, err := m.log.Text(ctx, r.Reminders[i].Hash)
		if err != nil && !store.HasCode(err, store.CodeNotFound) {
			return nil, err
		}
		texts[len(kept.Sections)+i] = said
	}
	return r.Sentence(sentence, texts), nil
}
