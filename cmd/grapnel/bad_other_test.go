//go:build !unix

package main

import "os"

// badPlugin needs signals of unix.
func badPlugin() { os.Exit(2) }
