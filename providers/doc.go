// Package providers lays a compiled prompt, tools and history out as a request for any provider. The adapters below
// it (anthropic, openai, gemini) put that into the types of their SDK.
//
// Fill in a [Request] and pass it to an adapter. Adapters begin with [Lay]. They send
// nothing: a host sends the request with the SDK's client, and may change it before.
//
// Nothing is decided here, only translated. What a provider cannot express becomes a
// [Warning] with a code, never a silent change:
//
//   - The texts of [Layout.System] joined are the prompt's full text, byte for byte,
//     except for sections of [Request.AfterConversation]. If the plan has breakpoints,
//     it is cut there and behind each dynamic section.
//   - Tools are sorted by name and their schemas are canonical JSON (RFC 8785), so that
//     equal tools are equal bytes.
//   - Messages alternate between user and assistant, and results stand directly behind
//     their calls.
//   - Names of tools that a provider does not accept are rewritten, and [Names]
//     translates them back.
//
// Stability: experimental until 1.0.
package providers
