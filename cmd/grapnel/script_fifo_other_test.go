//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

func cmdFIFO(*testscript.TestScript, bool, []string) {}
