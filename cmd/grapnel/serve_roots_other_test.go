//go:build !linux

package main

// swapProgram needs a system call of Linux.
func swapProgram() {}
