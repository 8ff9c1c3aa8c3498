// Command hosts runs agents of vendors against a fake model on loopback, and shows what each does with what its hooks
// answer: which call ran, what the model and the user got.
//
//	make hosts
//	go run . [-json] [-run REGEXP] [-keep] [claude-code] [codex] [gemini] [opencode]
//
// It gets the agents from the npm registry into .cache/hosts of the checkout. Each probe is a fresh home directory with
// hooks of its own: grapnel-hook with a gateway behind it, whose plugin is this program too; what grapnel install writes; a
// canned answer, to learn a host's contract; or a fault. The fake model calls the shell once with a command that leaves a marker. All that a probe
// says was observed: the marker in the file system, the requests that reached the model, and the agent's output.
//
// It needs Node.js, npm and the network, takes minutes, and is no test: what vendors do is recorded in docs/BRIDGES.md.
//
// Stability: internal.
package main
