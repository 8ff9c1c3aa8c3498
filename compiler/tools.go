package compiler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// requestDescription tells a model when to call request_tools. It names no domain:
// those are in the section, and the definition stays the same bytes in every prompt.
const requestDescription = "Loads tools that are there but not loaded. The section Hidden Tool Domains lists their domains and names. " +
	"Give the names of the domains that you need: the answer lists what was loaded, and from then on these tools can be called."

// requestSchema is canonical JSON.
const requestSchema = `{"additionalProperties":false,"properties":{"domains":{"description":"names of hidden domains, as they are listed",` +
	`"items":{"type":"string"},"minItems":1,"type":"array"}},"required":["domains"],"type":"object"}`

// RequestTools returns the definition of the engine's own tool, by which a model
// asks for hidden tools. It takes {"domains": [names]}, its owner is
// [phases.OwnerBuiltin], and whoever answers it adds the names to
// [Input.RequestedDomains] of the next prompt.
func RequestTools() phases.Tool {
	return phases.Tool{Name: phases.RequestTools, Description: requestDescription, InputSchema: []byte(requestSchema)}
}

// hiddenDomain is the domain that a tool is hidden in, as the section names it;
// empty for one that is offered.
func (c *compilation) hiddenDomain(t *phases.MergedTool) string {
	d := t.Definition.HiddenDomain
	if d == "" {
		return ""
	}
	if d = oneLine(d); slices.Contains(c.in.RequestedDomains, d) {
		return ""
	}
	return d
}

// hiddenDomains lists what request_tools can load: names only. Without tool
// calling there is nothing to request.
func hiddenDomains(c *compilation, s *section) {
	domains := map[string][]string{}
	for i := range c.in.Tools {
		if d := c.hiddenDomain(&c.in.Tools[i]); d != "" {
			domains[d] = append(domains[d], oneLine(c.in.Tools[i].Name))
		}
	}
	if len(domains) == 0 {
		return
	}
	names := make([]string, 0, len(domains))
	for d := range domains {
		names = append(names, d)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(hiddenIntro + "\n")
	for _, d := range names {
		slices.Sort(domains[d])
		b.WriteString("\n- " + d + ": " + strings.Join(slices.Compact(domains[d]), ", "))
	}
	s.raw = b.String()
	s.filtered = !c.in.ToolCalling
}

// The encoders are plans of types: immutable and safe for concurrent use.
//
//nolint:gochecknoglobals // immutable tables
var (
	toolsEncoder = digest.EncoderOf[[]manifest.Tool]()
	toolEncoder  = digest.EncoderOf[phases.Tool]()
)

// tools lists the tools, those that are offered with their definitions, and
// fingerprints what is offered.
func (c *compilation) tools() {
	hidden := false
	c.out.Tools = make([]manifest.Tool, 0, len(c.in.Tools)+1)
	c.out.Offered = make([]phases.MergedTool, 0, len(c.in.Tools)+1)
	for i := range c.in.Tools {
		d := c.hiddenDomain(&c.in.Tools[i])
		hidden = hidden || d != ""
		c.addTool(c.in.Tools[i], d)
	}
	if hidden && c.offersRequest() {
		c.addTool(requestTool(c.in.FingerprintKey), "")
	}
	slices.SortFunc(c.out.Tools, func(a, b manifest.Tool) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner), strings.Compare(a.BundleID, b.BundleID),
			strings.Compare(a.Hash, b.Hash), strings.Compare(a.HiddenDomain, b.HiddenDomain))
	})
	slices.SortFunc(c.out.Offered, func(a, b phases.MergedTool) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner), strings.Compare(a.BundleID, b.BundleID),
			strings.Compare(a.Hash, b.Hash), strings.Compare(a.Definition.Description, b.Definition.Description),
			slices.Compare(a.Definition.InputSchema, b.Definition.InputSchema))
	})
	c.out.Fingerprints.FingerprintTools = c.offeredFingerprint()
}

// addTool adds one tool; domain is where it is hidden, if it is.
func (c *compilation) addTool(t phases.MergedTool, domain string) {
	row := manifest.Tool{Name: valid(t.Name), BundleID: valid(t.BundleID), Owner: valid(t.Owner), Hash: valid(t.Hash), HiddenDomain: domain}
	c.out.Tools = append(c.out.Tools, row)
	if domain == "" {
		t.Definition.InputSchema = slices.Clone(t.Definition.InputSchema)
		c.out.Offered = append(c.out.Offered, t)
	}
}

// requestTool is request_tools beside the tools of plugins.
func requestTool(key []byte) phases.MergedTool {
	t := phases.MergedTool{Name: phases.RequestTools, Owner: phases.OwnerBuiltin, Definition: RequestTools()}
	if b, err := toolEncoder.Append(nil, &t.Definition); err == nil { // a constant that encodes
		t.Hash = digest.Fingerprint(key, b)
	}
	return t
}

// offersRequest says whether the model is offered request_tools: where it is told
// what there is to request, unless the host has a tool of that name, because no
// provider takes two. What is hidden cannot be called up otherwise, so that is
// recorded.
func (c *compilation) offersRequest() bool {
	reason := ""
	switch {
	case !slices.ContainsFunc(c.sections, func(s *section) bool { return s.SectionID == idHiddenDomains }):
		for _, l := range c.out.LeftOut {
			if l.ID == idHiddenDomains {
				reason = l.Reason
			}
		}
	case slices.Contains(c.in.HostTools, phases.RequestTools):
		reason = string(phases.CauseConflict)
	default:
		return true
	}
	c.out.LeftOut = append(c.out.LeftOut, phases.LeftOut{ID: phases.RequestTools, Owner: phases.OwnerBuiltin, Reason: reason})
	return false
}

// offeredFingerprint is the fingerprint of the rows of what is offered.
func (c *compilation) offeredFingerprint() string {
	offered := make([]manifest.Tool, 0, len(c.out.Offered))
	for i := range c.out.Tools {
		if c.out.Tools[i].HiddenDomain == "" {
			offered = append(offered, c.out.Tools[i])
		}
	}
	b, err := toolsEncoder.Append(nil, &offered)
	if err != nil {
		b = nil // strings that are valid UTF-8 always encode
	}
	return digest.Fingerprint(c.in.FingerprintKey, b)
}
