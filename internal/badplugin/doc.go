// Package badplugin is one plugin program that does everything wrong that
// plugins do wrong, a mode at a time. Tests of the engine run their own binary
// as this program.
//
// It belongs to no product. [Rows] is the table of what plugins do wrong;
// docs/FAILURES.md says what happens then, and the tests of package runtime
// have at least one case for each row (TestRows). Start reading at [Program.Run];
// the modes are in files by what they have in common:
//
//   - handlers.go, words.go: one hook by the sdk that behaves badly, or says what
//     it should not, and frames that do
//   - raw.go: what breaks the wire
//   - whole.go, tools.go: plugins with hooks, tools or a configuration of their own
//   - starts.go: starts that get stuck, and answers over several starts
//   - greedy.go: what uses up memory, or reaches for what was not granted
//
// Stability: internal.
package badplugin
