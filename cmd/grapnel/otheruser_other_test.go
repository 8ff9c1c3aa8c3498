//go:build !linux

package main

// otherProgram is not used on this system.
func otherProgram() {}
