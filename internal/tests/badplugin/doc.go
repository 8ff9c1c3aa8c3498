// Package badplugin is one plugin program that makes every mistake that plugins make, a mode at a time, for tests that
// run their own binary as a plugin. docs/FAILURES.md is the table of mistakes, and TestRows of package runtime has a
// case for each row. Plugins that mean harm are in the tests of package runtime (TestHostile). Start at [Program.Run].
//
// Stability: internal.
package badplugin
