// Package handover is what the hooks of the memory plugin that recall give to those
// that come after them: recalled memories as the JSON of one text.
//
// Hooks share nothing but what the runtime hands from one to the next. [Encode] makes
// the content of a context that is not rendered, and [Decode] reads it in the hook that
// writes the section, and in the one that runs after the turn. In between it has been
// in other hands, so it is checked like anything from outside: what is not as Encode
// makes it is refused whole.
//
// It is no format of storage, and no promise to other plugins.
//
// Stability: internal to the plugin.
package handover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// Bounds of what is read.
const (
	maxBytes = 64 << 10
	maxItems = 32
	maxID    = 64
	maxText  = itemstore.MaxText
)

// Parcel is what one hook has recalled.
type Parcel struct {
	Items []Item `json:"items"`
	// Left is how many more would have been good enough.
	Left int `json:"left,omitempty"`
}

// Item is one recalled memory.
type Item struct {
	ID       string `json:"id"`
	Scope    string `json:"scope"`
	Category string `json:"category"`
	// Text may be shortened; Cut says so.
	Text   string  `json:"text"`
	Cut    bool    `json:"cut,omitempty"`
	Pinned bool    `json:"pinned,omitempty"`
	Score  float64 `json:"score"`
}

// Of makes a parcel of what was selected.
func Of(s recall.Selection) Parcel {
	p := Parcel{Left: s.Left}
	for _, r := range s.Items {
		p.Items = append(p.Items, Item{r.ID, r.Scope, r.Category, r.Text, r.Cut, r.Pinned, r.Score})
	}
	return p
}

// Recalled are the items in the words of package recall.
func (p Parcel) Recalled() []recall.Recalled {
	var all []recall.Recalled
	for _, i := range p.Items {
		all = append(all, recall.Recalled{
			ID: i.ID, Scope: i.Scope, Category: i.Category, Text: i.Text, Cut: i.Cut, Pinned: i.Pinned, Score: i.Score,
		})
	}
	return all
}

// Encode is the content of a context. It is one line without "<", so that no rule for
// the text of prompts changes anything of it.
func (p Parcel) Encode() (string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("recalled memories: %w", err)
	}
	return string(data), nil
}

// Decode reads what Encode made.
func Decode(content string) (Parcel, error) {
	p, err := parse(content)
	if err == nil {
		err = p.validate()
	}
	if err != nil {
		return Parcel{}, fmt.Errorf("recalled memories: %w", err)
	}
	return p, nil
}

// parse reads exactly one value, strictly.
func parse(content string) (Parcel, error) {
	if len(content) > maxBytes {
		return Parcel{}, fmt.Errorf("more than %d bytes", maxBytes)
	}
	var p Parcel
	d := json.NewDecoder(bytes.NewReader([]byte(content)))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Parcel{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Parcel{}, errors.New("more than one value")
	}
	return p, nil
}

// validate reports what no hook of this plugin gives on.
func (p Parcel) validate() error {
	if len(p.Items) > maxItems || p.Left < 0 {
		return fmt.Errorf("%d items and %d more", len(p.Items), p.Left)
	}
	for i, item := range p.Items {
		if err := item.validate(); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func (i Item) validate() error {
	switch {
	case i.ID == "" || len(i.ID) > maxID || strings.ContainsFunc(i.ID, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return fmt.Errorf("id: %q", i.ID)
	case !slices.Contains(itemstore.Scopes(), itemstore.Scope(i.Scope)):
		return fmt.Errorf("scope: %q", i.Scope)
	case !slices.Contains(turnpolicy.Categories(), turnpolicy.Category(i.Category)):
		return fmt.Errorf("category: %q", i.Category)
	case strings.TrimSpace(i.Text) == "" || utf8.RuneCountInString(i.Text) > maxText:
		return errors.New("text: none, or too much")
	}
	return nil
}
