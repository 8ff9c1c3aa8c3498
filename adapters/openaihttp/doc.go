// Package openaihttp brings plugins to hosts in any language: a [Proxy] stands before the API of a model and puts compiled
// prompts, plugins' tools and verdicts into requests as they pass.
//
// It knows three APIs by their paths: Chat Completions (…/chat/completions) and Responses (…/responses), as many vendors
// and local servers have them, and Messages (…/v1/messages). Everything else passes as it came. Requests and answers
// keep the bytes and the order of all members but those that change.
//
// # Turns
//
// A request whose end is the user's begins a turn; one that brings results of calls goes on with the turn in which the
// model made them. Results find it by the calls' ids and by the conversation before them, under the same credentials, so
// that ids may repeat. Two waiting conversations that are the same to the byte cannot be told apart: what they bring
// begins a new turn. The turn ends when the model answers without calls of the client's, with an error, or
// when the client does not come back for [Options].Idle. A request that the provider refused may be sent again.
//
// Headers say more ([FromHeaders]): X-Grapnel-Workspace; -Thread, which makes turns of one conversation, with its
// memory and a prediction of the cache; -Turn, under which several agents share one turn, until none of them has a
// request under way or waits for a call; and -Agent, whose manifests have its id.
//
// # What a request gets
//
// The client's own instructions (leading system or developer messages, instructions, system) become the section
// [ClientSection] of the stable part, so that limits and manifest know them, and the compiled prompt stands in their
// place. Blocks of Messages that are marked for the cache stay marked: the stable part with the first mark, the rest
// with the last.
//
// Reminders are user messages behind the conversation. The client does not know them, nor the calls that it did not
// see; later requests get both at the same places again, so that the provider's cache holds: as long as the turn lasts,
// and with a named thread as long as [Options].KeepBytes allows.
//
// # What an answer loses
//
// Text passes as it streams. From its first call on, an answer is held back until it is complete. Then, in order, calls
// of plugins' tools are made and the client's are judged (tool.pre_call). The client gets its own allowed calls with
// rewritten arguments. If none is left, the model gets the results and refusals and is asked again, at most
// [Options].MaxRounds times; the client sees one answer, with the texts of all rounds and the last one's usage. If some
// are left beside others, the client answers those, and the others join them in its next request.
//
// Results of the client's go through tool.post_call once; what the plugins made of one stands in for it in all later
// requests. A result that is no longer remembered is judged again.
//
// # Errors
//
// A refusal is an error of the form that all three APIs share, with the status 403 and the reason. Answers of the API
// with another status than 200 pass unchanged. After the beginning of a stream, both are an event "error". What could not
// be judged is refused: several choices (n), functions, background answers, conversations that the provider stores,
// and other protocols on these paths.
//
// Stability: experimental until 1.0.
package openaihttp
