package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// duration decodes a length of time. Its bounds are about the sign only.
func (d *decoder) duration(n *node, p *phases.Duration, r rule) {
	var v phases.Duration
	seconds := fmt.Sprintf("%.80[1]ss for seconds or %.80[1]sms for milliseconds", n.text)
	if !d.quantity(n, &v, seconds, "a duration; write a number with a unit, such as 250ms or 2s") {
		return
	}
	if r.bounded && int64(v) < r.low {
		low := "more than 0s"
		if r.low <= 0 {
			low = "at least 0s"
		}
		d.badf(n, "%v is out of range; it is %s", v, low)
		return
	}
	*p = v
}

func (d *decoder) size(n *node, p *Size, r rule) {
	var v Size
	const example = "such as 512B, 64KiB or 256MiB"
	if !d.quantity(n, &v, "a size "+example, "a size; write a whole number with a unit, "+example) {
		return
	}
	if r.bounded && (int64(v) < r.low || int64(v) > r.high) {
		d.badf(n, "%s is out of range; %s", n.text, rangeOf(r, Size(r.low).String(), Size(r.high).String()))
		return
	}
	*p = v
}

func (d *decoder) quantity(n *node, p encoding.TextUnmarshaler, unit, form string) bool {
	if kind, _, _ := resolve(n.text); n.kind == numberNode || n.kind == textNode && kind == numberNode {
		d.badf(n, "%.80s has no unit; write %s", n.text, unit)
		return false
	}
	if !d.want(n, textNode) {
		return false
	}
	if err := p.UnmarshalText([]byte(n.text)); err != nil {
		d.badf(n, "%.80q is not %s", n.text, form)
		return false
	}
	return true
}

func (d *decoder) onFailure(n *node, p *phases.OnFailure) {
	words := enumerations[reflect.TypeFor[phases.FailureWord]()]
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
			d.addf(e.line, e.column, "%.80q is not a cause of failure%s", e.key, suggest.DidYouMean(e.key, causes))
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

// contributions decodes a list of fallback contributions. An empty list is not nil: it
// replaces what a plugin proposed.
func (d *decoder) contributions(n *node, p *phases.Contributions) {
	if !d.filled(n, listNode) {
		return
	}
	*p = phases.Contributions{}
	for _, item := range n.items {
		if c := d.contribution(item); c != nil {
			*p = append(*p, c)
		}
	}
}

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
	if k == "" {
		return nil // reported
	}
	c, before := newContribution(k), d.count
	d.fields(n, reflect.ValueOf(c).Elem(), "kind")
	if d.count == before {
		if err := phases.ValidateContribution(c, phases.Row{Kinds: phases.Kinds()}); err != nil {
			d.badKeyf(n, "%s", strings.Replace(phases.Whole(err), " ("+string(phases.CauseInvalidReply)+")", "", 1))
		}
	}
	return c
}

// enumerations are the words of types of package phases and of this one.
//
//nolint:gochecknoglobals // an immutable table
var enumerations = map[reflect.Type][]string{
	reflect.TypeFor[phases.Kind]():        texts(phases.Kinds()...),
	reflect.TypeFor[phases.Role]():        texts(phases.Roles()...),
	reflect.TypeFor[phases.FailureWord](): texts(phases.FailClosed, phases.BestEffort, phases.UseInstead),
	reflect.TypeFor[phases.Visibility](): texts(phases.VisibilityInternal, phases.VisibilityDebug,
		phases.VisibilityUserAudit, phases.VisibilityUserVisible),
	reflect.TypeFor[phases.WithoutNeeds](): texts(phases.TurnOff),
	reflect.TypeFor[phases.Stability]():    texts(phases.StabilityStable, phases.StabilityDynamic),
	reflect.TypeFor[phases.Placement]():    texts(phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage),
	reflect.TypeFor[phases.Verdict]():      texts(phases.VerdictAllow, phases.VerdictAsk, phases.VerdictDeny),
	reflect.TypeFor[phases.Severity]():     texts(phases.SeverityInfo, phases.SeverityWarning, phases.SeverityError),
	reflect.TypeFor[Right]():               {"read", "write", "compile", "dispatch", "admin"},
}

// wordsFor returns the words that a text of type t may be; nil if it may be any.
func (r rule) wordsFor(t reflect.Type) []string {
	if r.words != nil {
		return r.words
	}
	return enumerations[t]
}

func texts[T ~string](words ...T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

func newContribution(kind phases.Kind) phases.Contribution {
	var cs phases.Contributions
	if err := cs.UnmarshalJSON(fmt.Appendf(nil, `[{"kind":%q}]`, kind)); err != nil {
		panic(err) // a test makes one of every kind
	}
	return cs[0]
}

type field struct {
	key   string
	owner string // the Go type that declares it, for the table of rules
	index []int
	typ   reflect.Type
}

func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || key == "-" {
			continue
		}
		owner := t
		if len(f.Index) > 1 {
			owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		}
		out = append(out, field{key, owner.Name(), f.Index, f.Type})
	}
	return out
}
