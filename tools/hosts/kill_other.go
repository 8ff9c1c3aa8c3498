//go:build !linux

package main

import (
	"context"
	"errors"
	"syscall"
)

var errNoPeer = errors.New("only Linux tells which process listens at a socket")

func endGateway(context.Context, string, syscall.Signal) error { return errNoPeer }

func signalGateway(string, syscall.Signal) (int, error) { return 0, errNoPeer }
