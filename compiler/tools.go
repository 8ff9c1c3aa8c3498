package compiler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// requestDescription names no domain: the definition stays the same in every prompt.
const requestDescription = "Loads tools that are there but not loaded. The section Hidden Tool Domains lists their domains and names. " +
	"Give the names of the domains that you need: the answer lists what was loaded, and from then on these tools can be called."

const requestSchema = `{"additionalProperties":false,"properties":{"domains":{"description":"names of hidden domains, as they are listed",` +
	`"items":{"type":"string"},"minItems":1,"type":"array"}},"required":["domains"],"type":"object"}`

// RequestTools returns the definition of the engine's own tool, by which a model asks for hidden tools. It
// takes {"domains": [names]}; whoever answers it adds the names to [Input.RequestedDomains] of the next prompt.
func RequestTools() phases.Tool {
	return phases.Tool{Name: phases.RequestTools, Description: requestDescription, InputSchema: []byte(requestSchema)}
}

// hiddenDomain is the domain that a tool is hidden in; empty for one that is offered. A host with a prompt of its own hides none.
func (c *compilation) hiddenDomain(t *phases.MergedTool) string {
	d := oneLine(t.Definition.HiddenDomain)
	if c.in.HooksOnly || slices.Contains(c.in.RequestedDomains, d) {
		return ""
	}
	return d
}

// hiddenDomains lists what request_tools can load: names only.
func (c *compilation) hiddenDomains() string {
	domains := map[string][]string{}
	for i := range c.in.Tools {
		if d := c.hiddenDomain(&c.in.Tools[i]); d != "" {
			domains[d] = append(domains[d], oneLine(c.in.Tools[i].Name))
		}
	}
	if len(domains) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(hiddenIntro + "\n")
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		slices.Sort(domains[d])
		b.WriteString("\n- " + d + ": " + strings.Join(slices.Compact(domains[d]), ", "))
	}
	return b.String()
}

//nolint:gochecknoglobals // immutable and safe for concurrent use
var (
	toolsEncoder = sync.OnceValue(digest.EncoderOf[[]manifest.Tool])
	toolEncoder  = sync.OnceValue(digest.EncoderOf[phases.Tool])
)

// omitTools leaves out all tools, for a host that cannot offer any.
func (c *compilation) omitTools() {
	for i := range c.in.Tools {
		t := &c.in.Tools[i]
		c.unoffered = append(c.unoffered, phases.Omitted{ID: valid(t.Name), Owner: valid(t.Owner), Reason: ReasonHostCannot})
	}
	c.in.Tools = nil
}

// tools lists the tools and fingerprints the list.
func (c *compilation) tools() {
	hidden := false
	c.out.Tools = make([]manifest.Tool, 0, len(c.in.Tools)+1)
	c.out.Offered = make([]phases.MergedTool, 0, len(c.in.Tools)+1)
	for i := range c.in.Tools {
		d := c.hiddenDomain(&c.in.Tools[i])
		hidden = hidden || d != ""
		c.addTool(c.in.Tools[i], d)
	}
	if hidden {
		c.offerRequest()
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
	c.fingerprintTools()
}

func (c *compilation) addTool(t phases.MergedTool, domain string) {
	row := manifest.Tool{Name: valid(t.Name), BundleID: valid(t.BundleID), Owner: valid(t.Owner), Hash: valid(t.Hash), HiddenDomain: domain}
	c.out.Tools = append(c.out.Tools, row)
	if domain == "" {
		t.Definition.InputSchema = slices.Clone(t.Definition.InputSchema)
		c.out.Offered = append(c.out.Offered, t)
	}
}

// offerRequest offers request_tools or sets noRequest.
func (c *compilation) offerRequest() {
	s := c.own[sections.HiddenToolDomains]
	switch c.noRequest = c.absence(s); {
	case c.noRequest != "":
	case s.omitted != nil:
		c.noRequest = ReasonBudget
	case slices.Contains(c.in.ExistingTools, phases.RequestTools):
		c.noRequest = string(phases.CauseConflict)
	default:
		t := phases.MergedTool{Name: phases.RequestTools, Owner: phases.OwnerBuiltin, Definition: RequestTools()}
		if b, err := toolEncoder().Append(nil, &t.Definition); err == nil { // a constant that encodes
			t.Hash = digest.Hash(c.in.FingerprintKey, b)
		}
		c.addTool(t, "")
	}
}

// fingerprintTools fingerprints the list of the offered tools.
func (c *compilation) fingerprintTools() {
	offered := slices.DeleteFunc(slices.Clone(c.out.Tools), func(t manifest.Tool) bool { return t.HiddenDomain != "" })
	f := &c.out.Fingerprints
	f.FingerprintTools, f.HashTools = toolSums(c.in.FingerprintKey, offered)
}

func toolSums(key []byte, offered []manifest.Tool) (fingerprint, sum string) {
	b, _ := toolsEncoder().Append(nil, &offered) // strings that are valid UTF-8 always encode
	return digest.Fingerprint(key, string(b)), digest.Hash(key, b)
}
