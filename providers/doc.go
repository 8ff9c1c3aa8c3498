// Package providers lays a compiled prompt, tools and history out as a request,
// in words that are no provider's. The adapters below it (anthropic, openai,
// gemini) put that into the types of their SDK.
//
// # Where to start
//
// Fill in a [Request] and hand it to an adapter. [Lay] is what all adapters
// begin with; call it to write one of your own.
//
// # Translation only
//
// Nothing is decided here. What is in the prompt was decided by the compiler,
// what is in the history by package history, where to cache by the compiler's
// plan. What cannot be said to a provider as it was meant becomes a [Warning]
// with a code, never a silent change:
//
//   - The texts of [Layout.System] joined are the prompt's full text, byte for
//     byte, but for sections that the host wants behind the conversation
//     ([Request.AfterConversation]). Where the plan has breakpoints, they are cut there and behind each
//     dynamic section.
//   - Tools are sorted by name and their schemas are canonical JSON (RFC 8785),
//     so that equal tools are equal bytes, in whatever order they came.
//   - Messages alternate between user and assistant, and results stand directly
//     behind the calls that they answer, which all providers want.
//   - Names of tools that a provider does not take are rewritten, and [Names]
//     finds the way back.
//
// # What it is not
//
// It sends nothing and knows no keys. A host sends the request with the SDK's
// client, and may change it before.
//
// Stability: experimental until 1.0.
package providers
