import type { PluginAPI } from "@ampcode/plugin"

export default function (amp: PluginAPI) {
  const tell = (name: string, thread: { id: string }, more: Record<string, unknown> = {}) => post({ hook_event_name: name, session_id: thread.id, cwd: process.cwd(), ...more })
  const observe = (...args: Parameters<typeof tell>) => tell(...args).catch((e): Answer => (amp.logger.log(String(e)), {}))

  amp.on("session.start", async (event) => void (await observe("SessionStart", event.thread, { source: "startup" })))

  // Amp cannot be made to drop a prompt: the model is told not to act on one that was refused.
  amp.on("agent.start", async (event) => {
    const answer = await tell("UserPromptSubmit", event.thread, { prompt: event.message, turn_id: String(event.id) }).catch((e): Answer => ({ deny: String(e) }))
    const content = answer.deny ? `A hook refused the user's message: ${answer.deny}\nTell the user so, and do nothing else.` : answer.context
    return content ? { message: { content } } : {}
  })

  amp.on("tool.call", async (event) => {
    const call = { tool_name: event.tool, tool_use_id: event.toolUseID, tool_input: event.input }
    const answer = await tell("PreToolUse", event.thread, call).catch((e): Answer => ({ deny: String(e) }))
    if (answer.deny) return { action: "reject-and-continue", message: answer.deny }
    return answer.arguments ? { action: "modify", input: answer.arguments } : { action: "allow" }
  })

  amp.on("tool.result", async (event) => {
    if (event.status === "cancelled") return
    const text = event.status === "error" ? (event.error ?? "") : typeof event.output === "string" ? event.output : JSON.stringify(event.output ?? "")
    const call = { tool_name: event.tool, tool_use_id: event.toolUseID, tool_input: event.input, tool_response: text, is_error: event.status === "error" }
    const answer = await tell("PostToolUse", event.thread, call).catch((e): Answer => ({ result: String(e) }))
    if (answer.result === undefined && !answer.context) return
    const output = (answer.result ?? text) + (answer.context ? `\n\n${answer.context}` : "")
    return event.status === "error" ? { status: "error", error: output } : { status: "done", output }
  })

  amp.on("agent.end", async (event) => {
    if (event.status !== "done") {
      await observe(event.status === "error" ? "StopFailure" : "Interrupt", event.thread)
      return
    }
    const answer = await observe("Stop", event.thread, { turn_id: String(event.id) })
    if (answer.deny) return { action: "continue", userMessage: answer.deny }
  })
}
