package cond

import "github.com/grapnelhq/grapnel/phases"

// Policies returns what the condition reads of the turn's policy set, as
// conditions write it: policy["domain/key"]; nil for a nil Condition.
func (c *Condition) Policies() []string {
	if c == nil {
		return nil
	}
	var read []string
	for i := range c.slots {
		if leaf := &c.slots[i].leaf; leaf.grant == phases.SeePolicy {
			read = append(read, leaf.name)
		}
	}
	return read
}
