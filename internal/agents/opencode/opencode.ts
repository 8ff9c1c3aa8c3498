import type { Plugin } from "@opencode-ai/plugin"
import type { Message, Part, ToolList } from "@opencode-ai/sdk"

const server: string[] = [] // starts the MCP server with plugins' tools; grapnel install fills it in
/** Cuts a part of the system prompt at the files of instructions in it; one is ours. */
const sections = (text: string, ours?: string) => text === ours ? [{ ID: "grapnel", Title: "grapnel", Owner: "grapnel", Stability: "dynamic", Text: text }] :
  text.split(/^(?=Instructions from: )|(?=\n\nSkills provide )/m).map((part) => ({ part, file: /^Instructions from: (.+)\n/.exec(part)?.[1] }))
    .map(({ part, file }) => ({ ID: file ? "instructions" : "system", Title: file ?? "system", Owner: "opencode", Text: part }))

/** Returns what the model gets of a part of a message. */
const partsOf = (Role: string, part: Part, listed: ToolList) => {
  const Text = part.type === "file" ? part.url : "text" in part ? part.text : undefined
  if (!("callID" in part)) return Text ? [{ Role, Kind: part.type, Owner: "synthetic" in part && part.synthetic ? "opencode" : Role === "assistant" ? "model" : "user", Text }] : []
  const { callID: ID, tool, state } = part, [server] = tool.split("_")
  const Owner = listed.some((own) => own.id === tool) ? "opencode" : server === "grapnel" ? server : `mcp:${server}`
  const call = { ID, Role, Kind: "tool_use", Owner: "model", Text: `${tool} ${JSON.stringify(state.input)}` }
  return [call, { ID, Role: "user", Kind: "tool_result", Owner, Text: state.status === "completed" ? state.output : state.status === "error" ? state.error : "" }]
}
export const Grapnel: Plugin = async ({ client, directory }) => {
  const context = new Map<string, string>(), said = new Map<string, string>() // by session: what the system prompt tells the model, and its last text
  const parents = new Map<string, string | undefined>(), tools = new Map<string, ToolList>() // by session: the one whose task it works on, and the tools as of its last prompt
  const parentOf = async (id: string) => (await client.session.get({ path: { id } })).data?.parentID
  const prompts = new Map<string, string[][]>(), sent = new Map<string, { agent: string; messages: { info: Message; parts: Part[] }[] }>() // by session: the system prompts of requests that are being made, and the last messages
  const going = new Set<string>(), counted = new Set<string>() // sessions whose next message is ours; messages, which are updated more than once
  const tell = (name: string, session_id: string, more: Record<string, unknown> = {}) => post({ hook_event_name: name, session_id, parent_session_id: parents.get(session_id), cwd: directory, ...more })
  const observe = (...args: Parameters<typeof tell>) => tell(...args).catch((e) => console.error(String(e)))
  return {
    config: async (settings) => {
      if (server.length) (settings.mcp ??= {}).grapnel ??= { type: "local", command: server }
    },
    "chat.message": async (input, output) => {
      const prompt = output.parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).filter(Boolean).join("\n")
      if (!prompt && going.delete(input.sessionID)) return
      if (!parents.has(input.sessionID)) parents.set(input.sessionID, await parentOf(input.sessionID).catch(() => undefined))
      const answer = await tell("UserPromptSubmit", input.sessionID, { prompt, turn_id: output.message.id, model: input.model?.modelID })
      if (answer.deny) throw new Error(answer.deny)
      context.set(input.sessionID, answer.context ?? "")
      tools.delete(input.sessionID)
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = context.get(input.sessionID ?? "")
      if (text) output.system.push(text)
      if (input.sessionID) prompts.set(input.sessionID, [...(prompts.get(input.sessionID) ?? []), output.system])
    },
    "experimental.chat.messages.transform": async (_, { messages }) => {
      const info = messages.findLast((message) => message.info.role === "user")?.info
      if (info?.role === "user") sent.set(info.sessionID, { agent: info.agent, messages })
    },
    "chat.params": async ({ sessionID, agent, model }) => {
      const ours = context.get(sessionID), system = prompts.get(sessionID)?.shift() ?? [], own = sent.get(sessionID)
      if (own?.agent !== agent) return // one for a title or a summary, whose messages no hook sees
      const of = { provider: model.providerID, model: model.id }, list = async () => (await client.tool.list({ query: of })).data ?? []
      try {
        if (!tools.has(sessionID)) tools.set(sessionID, (await list().catch((): ToolList => [])).filter((tool) => tool.id !== "invalid")) // which no model is offered
        const listed = tools.get(sessionID)!, messages = own.messages.map(({ info, parts }) => parts.flatMap((part) => partsOf(info.role, part, listed)))
        const request = { system: system.flatMap((text) => sections(text, ours)), messages, tools: listed.map((tool) => ({ ID: tool.id, Owner: "opencode", Text: JSON.stringify(tool) })) }
        await tell("Request", sessionID, { ...of, ...request, not_seen: "tools of MCP servers; tools that are listed may not be offered" })
      } catch (e) { console.error(String(e)) } // what is not recorded is sent all the same
    },
    "tool.execute.before": async (input, output) => {
      const answer = await tell("PreToolUse", input.sessionID, { tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args })
      if (answer.deny) throw new Error(answer.deny)
      if (answer.arguments) { // opencode keeps the object, not what is put in its place
        for (const name of Object.keys(output.args)) delete output.args[name]
        Object.assign(output.args, answer.arguments)
      }
    },
    "tool.execute.after": async (input, output) => {
      const answer = await tell("PostToolUse", input.sessionID, { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args, tool_response: output.output })
      output.output = (answer.result ?? output.output) + (answer.context ? `\n\n${answer.context}` : "")
    },
    "experimental.text.complete": async (input, output) => void said.set(input.sessionID, output.text),
    "experimental.session.compacting": async (input) => void (await observe("PreCompact", input.sessionID, { trigger: "auto" })),
    event: async ({ event: e }) => {
      if (e.type === "session.created") parents.set(e.properties.info.id, e.properties.info.parentID)
      if (e.type === "session.created") await observe("SessionStart", e.properties.info.id, { source: "startup" })
      if (e.type === "session.deleted") await observe("SessionEnd", e.properties.info.id, { reason: "deleted" })
      if (e.type === "session.compacted") await observe("PostCompact", e.properties.sessionID, { trigger: "auto" })
      if (e.type === "session.error" && e.properties.sessionID) await observe("StopFailure", e.properties.sessionID, { error: e.properties.error?.name })
      if (e.type === "message.updated" && e.properties.info.role === "assistant" && e.properties.info.time.completed && !counted.has(e.properties.info.id)) {
        const { id, sessionID, modelID, tokens: t } = e.properties.info
        counted.add(id)
        const usage = { input_tokens: t.input + t.cache.read + t.cache.write, output_tokens: t.output + t.reasoning, cache_read_tokens: t.cache.read, cache_write_tokens: t.cache.write }
        await observe("Usage", sessionID, { model: modelID, usage })
      }
      if (e.type !== "session.idle") return
      const id = e.properties.sessionID
      sent.delete(id)
      const answer = await observe("Stop", id, { last_assistant_message: said.get(id) })
      if (answer?.deny && going.add(id)) await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text: answer.deny, synthetic: true }] } })
    },
  }
}
