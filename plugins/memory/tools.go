package memory

import (
	"context"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/sdk"
)

// bundleID is the tools' bundle.
const bundleID = "memory"

// offer is the handler of the hook "tools".
func (m *memory) offer(_ context.Context, call *sdk.Call, in *phases.PreToolsInput) ([]phases.Contribution, error) {
	p, ok := turnPolicy(call.Policies)
	if !ok || !in.ToolCalling {
		return nil, nil
	}
	tools := toolset.Definitions(allowed(p))
	if len(tools) == 0 {
		return nil, nil
	}
	return sdk.Reply(&phases.ToolBundle{Common: phases.Common{ContributionID: bundleID, Domain: domain}, BundleID: bundleID, Tools: tools})
}
