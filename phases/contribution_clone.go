package phases

import (
	"maps"
	"slices"
)

// Kind implements Contribution.
func (*Policy) Kind() Kind { return KindPolicy }

// Kind implements Contribution.
func (*PromptContext) Kind() Kind { return KindPromptContext }

// Kind implements Contribution.
func (*PromptSection) Kind() Kind { return KindPromptSection }

// Kind implements Contribution.
func (*ToolBundle) Kind() Kind { return KindToolBundle }

// Kind implements Contribution.
func (*Decision) Kind() Kind { return KindDecision }

// Kind implements Contribution.
func (*Rewrite) Kind() Kind { return KindRewrite }

// Kind implements Contribution.
func (*Reminder) Kind() Kind { return KindReminder }

// Kind implements Contribution.
func (*ManifestDiagnostic) Kind() Kind { return KindManifestDiagnostic }

// Kind implements Contribution.
func (*Audit) Kind() Kind { return KindAudit }

// Kind implements Contribution.
func (*BackgroundJob) Kind() Kind { return KindBackgroundJob }

// Kind implements Contribution.
func (*Noop) Kind() Kind { return KindNoop }

func (c *Policy) clone() Contribution {
	d := *c
	d.Common, d.Value = c.copied(), cloneRaw(c.Value)
	return &d
}

func (c *PromptContext) clone() Contribution {
	d := *c
	d.Common, d.SourceRefs, d.Render = c.copied(), slices.Clone(c.SourceRefs), clonePtr(c.Render)
	return &d
}

func (c *PromptSection) clone() Contribution {
	d := *c
	d.Common, d.SourceRefs = c.copied(), slices.Clone(c.SourceRefs)
	d.Frame, d.Cut = clonePtr(c.Frame), clonePtr(c.Cut)
	return &d
}

func (c *ToolBundle) clone() Contribution {
	d := *c
	d.Common, d.Tools = c.copied(), slices.Clone(c.Tools)
	for i := range d.Tools {
		d.Tools[i].InputSchema = cloneRaw(d.Tools[i].InputSchema)
	}
	return &d
}

func (c *Decision) clone() Contribution {
	d := *c
	d.Common = c.copied()
	return &d
}

func (c *Rewrite) clone() Contribution {
	d := *c
	d.Common, d.Value = c.copied(), cloneRaw(c.Value)
	return &d
}

func (c *Reminder) clone() Contribution {
	d := *c
	d.Common, d.Attributes = c.copied(), maps.Clone(c.Attributes)
	return &d
}

func (c *ManifestDiagnostic) clone() Contribution {
	d := *c
	d.Common = c.copied()
	return &d
}

func (c *Audit) clone() Contribution {
	d := *c
	d.Common, d.Details = c.copied(), cloneRaw(c.Details)
	return &d
}

func (c *BackgroundJob) clone() Contribution {
	d := *c
	d.Common, d.Payload = c.copied(), cloneRaw(c.Payload)
	return &d
}

func (c *Noop) clone() Contribution { return &Noop{c.copied()} }

// CloneContribution returns a copy that shares no mutable memory with c.
func CloneContribution(c Contribution) Contribution { return c.clone() }

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
