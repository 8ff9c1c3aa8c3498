// A fake Amp: it calls the handlers of the plugin at argv[2] as Amp does, and prints what they returned.
const plugin = (await import(process.argv[2])).default
const on = {}
plugin({ on: (name, handler) => (on[name] = handler), logger: { log: () => {} } })
const thread = { id: "s" }
const call = (tool) => ({ thread, toolUseID: "c", tool, input: { command: "ls" } })
const out = {}
await on["session.start"]({ thread })
out.deny = await on["agent.start"]({ thread, message: "deny me", id: 1 })
out.prompt = await on["agent.start"]({ thread, message: "hi", id: 2 })
out.call = await on["tool.call"](call("bash"))
out.denied = await on["tool.call"](call("rm"))
out.result = await on["tool.result"]({ ...call("bash"), status: "done", output: "key" })
out.end = await on["agent.end"]({ thread, message: "hi", id: 2, status: "done", messages: [] })
process.env.GRAPNEL_TOKEN = "wrong"
out.closed = await on["tool.call"](call("bash"))
console.log(JSON.stringify(out))
