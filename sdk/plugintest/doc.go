// Package plugintest is the kit with which authors test a plugin.
//
//	func TestGreeting(t *testing.T) {
//		got := plugintest.Run(t, plugin, plugintest.Case{
//			Hook:    "greet",
//			Context: phases.Context{WorkspaceID: "garden"},
//		})
//		// compare got.Contributions with what you want
//	}
//
// # What Run checks
//
// One [Run] makes the call of a [Case] several times and fails the test when a
// host could be surprised:
//
//  1. The plugin describes itself and takes the configuration; the description
//     is valid, and the same over the wire.
//  2. The handler does not panic.
//  3. Each contribution is well formed, of a kind that the phase takes and that
//     the hook declares.
//  4. The same call gives the same answer, byte for byte, and the answers share
//     no memory: what a handler returns belongs to the host.
//  5. Over the wire (gRPC on a unix socket, as in a real process) the answer is
//     the same as in process.
//  6. When its context ends, the call returns.
//  7. The plugin ends (OnClose), without an error and in time, and no goroutine of
//     its is left.
//
// [Fixtures] does the same for files that hold a call and the answer wanted.
// [Host] is a fake host with scripted services that records what it is asked.
//
// # What is not here
//
// No engine: budgets, grants, merging and failure policies are the host's, and
// a plugin need not test them. Nothing starts a process.
//
// Stability: experimental until 1.0.
package plugintest
