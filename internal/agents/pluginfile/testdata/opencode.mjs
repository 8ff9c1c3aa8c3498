// A fake opencode: it calls the hooks of the plugin at argv[2] as opencode does, and prints what they did.
const { Grapnel } = await import(process.argv[2])
const prompts = []
const hooks = await Grapnel({ directory: "/w", client: { session: { promptAsync: async (p) => prompts.push(p) } } })
const attempt = async (f) => { try { await f() } catch (e) { return e.message } }
const message = (text) => hooks["chat.message"]({ sessionID: "s", model: { modelID: "m" } }, { message: { id: "u" }, parts: [{ type: "text", text }] })
const out = {}
out.deny = await attempt(() => message("deny me"))
out.prompt = await attempt(() => message("hi"))
const system = { system: ["yours"] }
await hooks["experimental.chat.system.transform"]({ sessionID: "s" }, system)
out.system = system.system
const args = { command: "ls", old: 1 }
const same = args
out.call = await attempt(() => hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, { args }))
out.args = same
out.denied = await attempt(() => hooks["tool.execute.before"]({ tool: "rm", sessionID: "s", callID: "d" }, { args: {} }))
const result = { title: "", output: "key", metadata: {} }
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "c", args }, result)
out.result = result.output
await hooks["experimental.text.complete"]({ sessionID: "s", messageID: "a", partID: "p" }, { text: "done" })
const info = { id: "a", role: "assistant", sessionID: "s", modelID: "m", time: { completed: 1 }, tokens: { input: 1, output: 2, reasoning: 3, cache: { read: 4, write: 5 } } }
for (let i = 0; i < 2; i++) await hooks.event({ event: { type: "message.updated", properties: { info } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
out.prompts = prompts
await hooks["chat.message"]({ sessionID: "s" }, { message: { id: "v" }, parts: prompts[0].body.parts }) // it belongs to the turn that goes on: no event
process.env.GRAPNEL_TOKEN = "wrong"
out.closed = await attempt(() => hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "e" }, { args: {} }))
console.log(JSON.stringify(out))
