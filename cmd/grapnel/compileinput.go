package main

import (
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/runtime"
)

// compileInput is what --input and --message bring; the message wins.
func (a *app) compileInput(f *compileFlags) (runtime.CompileInput, error) {
	var in runtime.CompileInput
	if f.input == "-" && f.message == "-" {
		return in, usagef("--input and --message cannot both be read from standard input")
	}
	data, err := a.readJSON("input", f.input)
	if err != nil {
		return in, err
	}
	var file surface.TurnInput
	if len(data) > 0 {
		if err := strictJSON(data, &file); err != nil {
			return in, usagef("--input %s: %w; see: grapnel schema compile-input", f.input, err)
		}
	}
	in = file.CompileInput()
	switch f.message {
	case "":
	case "-":
		text, err := a.readInput("message", "-")
		if err != nil {
			return in, err
		}
		in.UserText = string(text)
	default:
		in.UserText = f.message
	}
	return in, nil
}
