// Grapnel's plugin for Amp: it tells a gateway what happens, and does what that answers. See docs/BRIDGES.md.
import { readFileSync } from "node:fs"
import { request } from "node:http"
import { homedir } from "node:os"
import type { PluginAPI } from "@ampcode/plugin"

type Answer = { deny?: string; arguments?: Record<string, unknown>; result?: string; context?: string }

const env = process.env
const socket = env.GRAPNEL_SOCKET ?? (env.XDG_RUNTIME_DIR ? `${env.XDG_RUNTIME_DIR}/grapnel/hook.sock` : `${homedir()}/.grapnel/hook.sock`)
const token = () => env.GRAPNEL_TOKEN ?? readFileSync(`${env.XDG_DATA_HOME ?? `${homedir()}/.local/share`}/grapnel/token`, "utf8").trim()

/** Sends an event. It rejects where nothing was decided. */
function post(event: Record<string, unknown>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token()}` }
    const r = request({ socketPath: socket, path: "/hook/amp", method: "POST", headers, timeout: 60_000 }, (res) => {
      let text = ""
      res.setEncoding("utf8").on("data", (part: string) => (text += part)).on("error", reject)
      res.on("end", () => {
        try {
          if (res.statusCode !== 200) throw new Error(text.trim())
          resolve(text ? JSON.parse(text) : {})
        } catch (e) { reject(e) }
      })
    })
    r.on("timeout", () => r.destroy(new Error("it took too long"))).on("error", reject)
    r.end(JSON.stringify(event))
  }).catch((e) => { throw new Error(`Grapnel decided nothing: ${e instanceof Error ? e.message : e}`) }) as Promise<Answer>
}

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
