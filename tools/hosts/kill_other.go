//go:build !linux

package main

import (
	"context"
	"errors"
	"syscall"
)

func endGateway(context.Context, string, syscall.Signal) error {
	return errors.New("only Linux tells which process listens at a socket")
}
