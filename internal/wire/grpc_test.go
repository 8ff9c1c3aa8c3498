package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// TestServiceDesc: the service is the one that the contract declares.
func TestServiceDesc(t *testing.T) {
	t.Parallel()

	got, want := serviceDesc(), pluginpb.Plugin_ServiceDesc
	if diff := cmp.Diff(got, want, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(grpc.ServiceDesc{}, "HandlerType", "Metadata"), cmpopts.IgnoreFields(grpc.StreamDesc{}, "Handler")); diff != "" {
		t.Errorf("service (-got +want):\n%s", diff)
	}
	if sessionMethod != pluginpb.Plugin_Session_FullMethodName {
		t.Errorf("method %q, want %q", sessionMethod, pluginpb.Plugin_Session_FullMethodName)
	}
}
