// Package chaintest helps to test code that looks at files, with the rights of
// people who may not look at all of them. It imports nothing of the plugin. Where
// to start: [AsOrdinary].
//
// Stability: experimental.
package chaintest
