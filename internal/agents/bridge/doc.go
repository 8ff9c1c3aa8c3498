// Package bridge puts Grapnel behind agents that people run: it runs the phases of their events on an engine
// ([Bridge.Handle]), and keeps the turns of their sessions between events. Package agents reads the events and writes the
// answers.
//
// Stability: internal.
package bridge
