// Prints why the plugin at argv[2], for the host argv[3], refuses a call. Its time passes ten times as fast, and more.
const slow = globalThis.setTimeout
globalThis.setTimeout = (f, ms) => slow(f, Math.min(ms, 300))
const plugin = await import(process.argv[2])
if (process.argv[3] === "amp") {
  const on = {}
  plugin.default({ on: (name, handler) => (on[name] = handler), logger: { log: () => {} } })
  console.log((await on["tool.call"]({ thread: { id: "s" }, toolUseID: "c", tool: "bash", input: {} })).message ?? "allowed")
} else {
  const hooks = await plugin.Grapnel({ directory: "/w", client: {} })
  console.log(await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, { args: {} }).then(() => "allowed", (e) => e.message))
}
