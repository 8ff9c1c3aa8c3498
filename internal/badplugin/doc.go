// Package badplugin is one plugin program that does everything wrong that
// plugins do wrong, a mode at a time. Tests of the engine run their own binary
// as this program: see docs on failure modes for what must happen.
//
// It belongs to no product. Start reading at [Run]; the modes that keep to the
// sdk are in handlers.go, those that break the wire in raw.go.
//
// Stability: internal.
package badplugin
