package cond

import "strings"

// Policies returns what the condition reads of the turn's policy set, as
// conditions write it: policy["domain/key"]; nil for a nil Condition.
func (c *Condition) Policies() []string {
	if c == nil {
		return nil
	}
	var read []string
	for i := range c.slots {
		if name := c.slots[i].leaf.name; strings.HasPrefix(name, "policy[") {
			read = append(read, name)
		}
	}
	return read
}
