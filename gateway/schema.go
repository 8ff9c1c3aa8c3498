package gateway

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// Schema returns the document that describes the gateway to clients: methods with
// the JSON Schemas of params and result, notifications, and errors. It is the same
// bytes for the same version.
func Schema() (json.RawMessage, error) {
	types, err := wireTypes()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	// The methods are described, and none is called: they need nothing to work with.
	g := &Gateway{}
	s, err := rpc.New(rpc.Options{Methods: g.methods(), Notifications: notifications(), Types: types})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return s.Schema()
}
