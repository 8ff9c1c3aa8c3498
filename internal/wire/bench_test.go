package wire

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// plainCall is what gRPC users would write: a unary call that sends back what
// it got.
func plainCall(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC's signature
	in := new(wrapperspb.StringValue)
	if err := dec(in); err != nil {
		return nil, err
	}
	return wrapperspb.String(in.GetValue()), nil
}
