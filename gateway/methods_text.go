package gateway

import (
	"context"
	"strings"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type (
	textResult struct {
		ManifestID string        `json:"manifest_id"`
		Sections   []sectionText `json:"sections"    jsonschema:"in the order of the prompt"`
		Checked    bool          `json:"checked"     jsonschema:"whether each text is there and has the hash of its section"`
		Why        string        `json:"why"         jsonschema:"why not, for people; empty if it is"`
	}
	sectionText struct {
		ID   string  `json:"id"`
		Text *string `json:"text" jsonschema:"without a heading; null if it was not kept, or is gone"`
	}
)

const keyed = "hmac-" // begins a hash that was made with a key

// texts reads the texts of a prompt, as far as they were kept.
func (m *manifestMethods) texts(ctx context.Context, c call[getParams]) (textResult, error) {
	list, err := m.read(ctx, c.Caller, c.params.filter(), namedID{"manifest_id", c.params.ManifestID})
	if err != nil {
		return textResult{}, err
	}
	return m.textsWithin(ctx, list[0])
}

// textsWithin reads the texts of a prompt once it has memory for them.
func (m *manifestMethods) textsWithin(ctx context.Context, of *manifest.Manifest) (textResult, error) {
	chars := 0
	for i := range of.Sections {
		chars += of.Sections[i].Chars
	}
	if err := rpc.Expect(ctx, answerBytes+4*chars); err != nil {
		return textResult{}, err
	}
	result := textResult{ManifestID: of.ManifestID, Sections: []sectionText{}}
	missing, differ := 0, []string{}
	for i := range of.Sections {
		s := &of.Sections[i]
		row := sectionText{ID: s.SectionID}
		text, err := m.log.Text(ctx, s.Hash)
		switch {
		case err == nil:
			if !strings.HasPrefix(s.Hash, keyed) && manifest.Hash(text, nil) != s.Hash {
				differ = append(differ, s.SectionID)
			}
			row.Text = new(of.Body(s, text))
		case store.HasCode(err, store.CodeNotFound):
			missing++
		default:
			return textResult{}, err
		}
		result.Sections = append(result.Sections, row)
	}
	result.Why = whyUnchecked(of, missing, differ)
	result.Checked = result.Why == ""
	return result, nil
}

func whyUnchecked(of *manifest.Manifest, missing int, differ []string) string {
	switch {
	case len(differ) > 0:
		return "these texts are not the ones that were compiled: " + strings.Join(differ, ", ") + "; see: grapnel manifest verify"
	case missing > 0 && !of.TextsKept:
		return "its texts were not kept: manifest.keep_text in the configuration keeps them"
	case missing > 0:
		return "some of its texts are gone: retention or an erasure took them"
	case strings.HasPrefix(of.HashFull, keyed):
		return "its hashes are keyed: grapnel manifest show --text checks them with the key"
	}
	return ""
}
