package config

import (
	"encoding"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// duration decodes a length of time. Its bounds are about the sign only.
func (d *decoder) duration(n *node, p *phases.Duration, r rule) {
	if n.kind == numberNode || n.kind == textNode && bareNumber(n.text) {
		d.badf(n, "%.80s has no unit; write %.80[1]ss for seconds or %.80[1]sms for milliseconds", n.text)
		return
	}
	if !d.want(n, textNode) {
		return
	}
	var v phases.Duration
	if err := v.UnmarshalText([]byte(n.text)); err != nil {
		d.badf(n, "%.80q is not a duration; write a number with a unit, such as 250ms or 2s", n.text)
		return
	}
	if r.bounded && (int64(v) < r.low || int64(v) > r.high) {
		low := "more than 0s"
		if r.low <= 0 {
			low = "at least 0s"
		}
		d.badf(n, "%v is out of range; it is %s", v, low)
		return
	}
	*p = v
}

// size decodes a number of bytes.
func (d *decoder) size(n *node, p *Size, r rule) {
	if n.kind == numberNode || n.kind == textNode && bareNumber(n.text) {
		d.badf(n, "%.80s has no unit; write a size such as 512B, 64KiB or 256MiB", n.text)
		return
	}
	if !d.want(n, textNode) {
		return
	}
	var v Size
	if err := v.UnmarshalText([]byte(n.text)); err != nil {
		d.badf(n, "%v", err)
		return
	}
	if r.bounded && (int64(v) < r.low || int64(v) > r.high) {
		d.badf(n, "%s is out of range; %s", n.text, d.rangeOf(r, Size(r.low).String(), Size(r.high).String()))
		return
	}
	*p = v
}

// bareNumber reports whether a text reads as a number without a unit.
func bareNumber(text string) bool {
	kind, _, _ := resolve(text)
	return kind == numberNode
}

// onFailure decodes a word, or a mapping with words by cause. A cause that is no
// failure (denied, cancelled) is refused like an unknown one.
func (d *decoder) onFailure(n *node, p *phases.OnFailure) {
	words := wordsOf(reflect.TypeFor[phases.FailureWord]())
	if n.kind == textNode {
		d.text(n, reflect.ValueOf(&p.Default).Elem(), rule{})
		return
	}
	if n.kind != mappingNode {
		d.badf(n, "want a word (%s) or {default: WORD, CAUSE: WORD}, got %s", strings.Join(words, ", "), n.kind)
		return
	}
	causes := append([]string{"default"}, texts(phases.FailureCauses()...)...)
	for _, e := range n.entries {
		if !slices.Contains(causes, e.key) {
			d.addf(e.line, e.column, "%.80q is not a cause of failure%s", e.key, didYouMean(e.key, causes))
			continue
		}
		var word phases.FailureWord
		d.text(e.value, reflect.ValueOf(&word).Elem(), rule{})
		switch {
		case word == "":
		case e.key == "default":
			p.Default = word
		case p.ByCause == nil:
			p.ByCause = map[phases.Cause]phases.FailureWord{phases.Cause(e.key): word}
		default:
			p.ByCause[phases.Cause(e.key)] = word
		}
	}
}

// contributions decodes a list of fallback contributions. An empty list stays
// one: it replaces what a plugin proposed by nothing.
func (d *decoder) contributions(n *node, p *phases.Contributions) {
	if d.nothing(n, reflect.Slice) || !d.want(n, listNode) {
		return
	}
	*p = phases.Contributions{}
	for _, item := range n.items {
		if c := d.contribution(item); c != nil {
			*p = append(*p, c)
		}
	}
}

// contribution decodes one entry and checks it as the engine will, but for the
// phase, which a plugin's description may give.
func (d *decoder) contribution(n *node) phases.Contribution {
	if !d.want(n, mappingNode) {
		return nil
	}
	kind := n.child("kind")
	if kind == nil {
		d.badKeyf(n, "kind is missing; it is one of %s", strings.Join(texts(phases.Kinds()...), ", "))
		return nil
	}
	var k phases.Kind
	d.text(kind, reflect.ValueOf(&k).Elem(), rule{})
	c := newContribution(k)
	if c == nil {
		return nil // reported
	}
	before := d.count
	v := reflect.ValueOf(c).Elem()
	d.fields(n, v, fieldsOf(v.Type()), "kind")
	if d.count == before {
		if err := phases.ValidateContribution(c, phases.Row{Kinds: phases.Kinds()}); err != nil {
			d.badKeyf(n, "%s", strings.Replace(phases.Whole(err), " ("+string(phases.CauseInvalidReply)+")", "", 1))
		}
	}
	return c
}

// unmarshalText decodes a text by the type's own method.
func (d *decoder) unmarshalText(n *node, p encoding.TextUnmarshaler) {
	if !d.want(n, textNode) {
		return
	}
	if err := p.UnmarshalText([]byte(n.text)); err != nil {
		d.badf(n, "%.80q: %v", n.text, err)
	}
}
