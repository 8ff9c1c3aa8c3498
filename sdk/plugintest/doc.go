// Package plugintest is the test kit for plugin authors.
//
//	func TestGreeting(t *testing.T) {
//		got := plugintest.Run(t, plugin, plugintest.Case{
//			Hook:    "greet",
//			Context: phases.Context{WorkspaceID: "garden"},
//		})
//		// compare got.Contributions with what you want
//	}
//
// One [Run] makes the call of a [Case] several times and fails the test when a host could be surprised:
//
//  1. The plugin describes itself and takes the configuration; the description is valid, and the same over the wire.
//  2. The handler does not panic.
//  3. Each contribution is well formed, of a kind that the phase takes and that the hook declares.
//  4. The same call gives the same answer, byte for byte, and answers share no memory: they belong to the host.
//  5. Over the wire (gRPC on a unix socket, as in a real process) the answer is the same as in process.
//  6. When its context ends, the call returns.
//  7. The plugin ends (OnClose) without an error and in time, and leaves no goroutine.
//
// [Fixtures] does the same for files that hold a call and the expected answer. [Host] is a fake host with scripted
// services that records calls. There is no engine: budgets, grants, merging and failure policies are the host's.
//
// Stability: experimental until 1.0.
package plugintest
