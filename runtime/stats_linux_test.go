package runtime_test

import "testing"

// TestOverviewHasMemory: what the watch sees is in the plugin's row.
func TestOverviewHasMemory(t *testing.T) {
	b := newBench(t)
	eng := b.start(t)
	eventually(t, "no memory", func() string {
		if p := eng.Overview().Plugins[0]; p.MemoryBytes < 1<<20 {
			return p.Plugin
		}
		return ""
	})
}
