// Grapnel's mod for Claude Code: it has a gateway judge calls and prompts, brings sections and tools of plugins, and has it record what each request holds. See docs/BRIDGES.md.
// Claude Code reads the source before it runs it: $ may stand only as $.noun.event(...), so helpers get promises and values.

const PROGRAM = ['grapnel-hook'] // starts and names the gateway; grapnel install fills in the path, and its options
const OURS = 'grapnel' // the name of this plugin
const DECIDE = 25_000, CALL = 300_000, OFFER = 10_000, RECORD = 5_000, USAGE = 2_000 // milliseconds that a post is waited for

let link // calls of $ that posts need, from session.start, which comes again when this file is loaded again
let session // its id
const cwds = new Map() // by the id of a subagent
let key // a promise of the gateway's socket and token
let warned = false, slow = false // something is missing in the record; the last one was not taken
const others = new Set() // mods that saw requests beneath this one
const registered = new Set() // tools of plugins that this mod answers

// What the next requests are recorded with.
let sections = [], ours = [], files = []
const tools = new Map()
const labels = new Map() // by the id of a subagent
const hidden = new Map() // calls whose result a mod kept from the hooks, and why they are refused

const bare = (s) => s.replace(/^Error: /, '')
const why = (error) => 'Grapnel decided nothing: ' + bare(String(error?.message ?? error?.kind ?? error))
const deep = (a, b) => JSON.stringify(a) === JSON.stringify(b)

/** Rejects what takes too long. */
function within(ms, promise) {
  let timer
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`the gateway has not answered within ${ms / 1000} seconds`)), ms) })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Asks grapnel-hook, which checks who owns the socket and the token, and starts a gateway if none runs. */
async function unlock() {
  const r = await link.run([...PROGRAM, '--token'])
  if (r.exitCode !== 0) throw new Error(r.stderr.trim() || `grapnel-hook has ended with ${r.exitCode}`)
  const [socketPath, token] = r.stdout.split('\n')
  return { socketPath, headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) } }
}

/** Posts a text. A gateway that cannot be reached is started again. */
async function send(path, body, ms) {
  const until = Date.now() + ms
  for (let tries = 2; ; tries--) {
    key ??= unlock()
    const opened = key
    let r
    try {
      r = await link.send('http://localhost' + path, { method: 'POST', body, ...(await opened) })
    } catch (error) {
      if (key === opened) key = undefined
      if (tries === 0 || Date.now() > until) throw error
      continue
    }
    if (r.ok) return r.text ? JSON.parse(r.text) : {}
    if (r.status === 401 && key === opened) key = undefined
    if (r.status !== 401 || tries === 0) throw new Error(r.text.trim() || `the gateway said ${r.status}`)
  }
}

/** Keeps where an event of the settings' hooks happened. Other mods cannot change what those say, unlike answers of $. */
function keepPlace(e) {
  if (session && e.session_id !== session) [labels, cwds].forEach((of) => of.clear()) // they are of another conversation
  session = e.session_id
  cwds.set(e.agent_id, e.cwd)
}

const where = async (agent) => ({ session_id: session ?? (await link.id()), cwd: cwds.get(agent) ?? cwds.get(undefined) ?? (await link.cwd()) })

const post = (path, text, ms) => within(ms, send(path, text, ms))
const hook = (event, text, ms) => post('/hook/claude-code?event=' + event, text, ms)

/** Sends an event. It rejects where nothing was decided. */
const ask = async (event, fields, ms = DECIDE) => hook(event, JSON.stringify({ hook_event_name: event, mod: true, ...(await where(fields.agent_id)), ...fields }), ms)

const rpc = async (method, params, ms) => {
  const r = await post('/rpc', JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { workspace_id: 'local', dir: (await where()).cwd, ...params } }), ms)
  if (r.error) throw new Error(r.error.message)
  return r.result
}

/** Says once that something is missing. Nobody waits for a record then, until one is taken. */
function warn(error) {
  if (!warned) link?.log('grapnel: not all is on record: ' + bare(String(error?.message ?? error)))
  warned = slow = true
}

const kept = (promise) => promise.then(() => { slow = false }, warn)

/** The last entry of the engine itself beneath a hook; none where another mod answered in its place. */
const engine = (next) => next.trace.findLast((t) => t.tier === 'core' && t.returned !== undefined)

const mods = (next) => next.trace.filter((t) => t.tier !== 'core').map((t) => t.plugin)
const blame = (next, what) => `Grapnel: another mod (${mods(next).join(', ')}) ${what}`

/** What the engine gave to a call of ours on $, which other mods can see and answer. */
async function untouched(result, next, e) {
  const r = await result, core = engine(next)
  if (r.deny !== undefined) return r
  return core && deep(core.received, e) ? core.returned : { deny: blame(next, 'has answered or changed what the gateway was asked') }
}

const RANK = { allow: 0, ask: 1, deny: 2 }
const stricter = (a, b) => (RANK[b.decision] > RANK[a.decision] ? b : a)

/** The owner of a part: the engine if it has it, else the innermost mod that does. */
function ownerOf(next, has) {
  const first = next.trace.findLast((t) => t.returned !== undefined && has(t.returned))
  return !first || first.tier === 'core' ? 'claude-code' : 'mod:' + first.plugin
}

/** The owner of a row's text, by the door that it came in and by who caused it. */
function ownerOfRow(door, origin) {
  if (origin.kind === 'plugin') return 'mod:' + (origin.name ?? origin.event)
  if (origin.kind === 'hook') return 'hook:' + origin.event
  if (door === 'response' || origin.kind === 'model' || origin.kind === 'coordinator') return 'model'
  if (door === 'tool-message') return tools.get(origin.tool)?.owner ?? 'claude-code'
  return door === 'prompt' && ['composer', 'bridge', 'sdk', 'unclassified', 'auto-continuation'].includes(origin.kind) ? 'user' : 'claude-code'
}

/** What the next request of an agent is labelled with. */
function rowsOf(agent) {
  if (!labels.has(agent)) labels.set(agent, [])
  return labels.get(agent)
}

/** Sends a request of the engine as it is, with who owns its parts. */
async function record(agent, body) {
  const rows = rowsOf(agent)
  labels.delete(agent)
  const event = { hook_event_name: 'http.fetch', mod: true, ...(await where(agent)), agent_id: agent, other_mods: [...others], sections, files, labels: rows, tools: [...tools.values()] }
  await hook('http.fetch', JSON.stringify(event).slice(0, -1) + ',"request":' + body + '}', RECORD)
}

export function register(on) {
  on('session.start', async ($, e, next) => {
    link = { run: (argv) => $.process.run(argv), send: (url, init) => $.http.fetch(url, init), id: () => $.session.id(), cwd: () => $.session.cwd(), log: (text) => $.ui.log(text) }
    try {
      for (const t of (await rpc('mcp/tools', {}, OFFER)).tools ?? []) {
        await $.tool.register({ name: t.name, description: t.description, inputSchema: t.input_schema ?? { type: 'object', properties: {} }, isDeferred: false })
        registered.add(`mcp__${OURS}__${t.name}`)
      }
    } catch (error) { // an MCP server of the name brings them, or the session goes on without
      $.ui.log('grapnel: tools of plugins: ' + bare(String(error?.message ?? error)), { to: 'debug' })
    }
    return next(e)
  })

  // Our own calls on $ pass all mods beneath.
  on('http.fetch', async ($, e, next) => {
    if (next.origin.plugin === OURS) return untouched(next(e), next, e).finally(() => mods(next).forEach((m) => others.add(m)))
    if (next.origin.tier !== 'core' || !/\/v1\/messages$/.test(e.url.split('?')[0]) || typeof e.init?.body !== 'string') return next(e)
    const agent = e.init.headers?.['x-claude-code-agent-id']
    let recorded = others.size === 0 && kept(record(agent, e.init.body)) // else another mod may change it yet
    const r = await next(e)
    mods(next).forEach((m) => others.add(m))
    recorded ||= kept(record(agent, engine(next)?.received.init?.body ?? e.init.body))
    if (!slow) await recorded // -p could end before
    return r
  }).catch(($, e, next) => (next.origin.plugin === OURS ? { deny: 'Grapnel could not see who answered' } : next(e)))
  on('process.run', async ($, e, next) => (next.origin.plugin === OURS ? untouched(next(e), next, e) : next(e)))
    .catch(($, e, next) => (next.origin.plugin === OURS ? { deny: 'Grapnel could not see who answered' } : next(e)))

  // Guard: the gateway's verdict, the engine's with that of the settings' hooks, and the other mods': the strictest holds.
  on('tool.check', async ($, e, next) => {
    const below = await next(e) // which runs nothing
    const core = engine(next)?.returned
    if (core?.decision === 'deny') return core
    const event = e.tool_use_id?.includes(':preamble-') ? 'PreSkillShellCommand' : 'PreToolUse'
    const answer = await ask(event, { tool_name: e.tool, tool_input: e.input, tool_use_id: e.tool_use_id, agent_id: e.agentId })
    const { permissionDecision: decision, permissionDecisionReason: reason } = answer.hookSpecificOutput ?? {}
    if (decision === 'deny') return { decision, reason }
    if (!core) return { decision: 'deny', reason: blame(next, 'has answered in place of the rules and hooks') }
    return stricter(stricter(core, below), { decision, reason })
  }).catch(($, e, next) => ({ decision: 'deny', reason: why(next.error) }))
  on('tool.call', async ($, e, next) => {
    const r = await next(e)
    if (!engine(next)) return { deny: blame(next, 'has answered this call unseen') }
    const refused = hidden.get(e.tool_use_id)
    hidden.delete(e.tool_use_id)
    return refused ? { deny: refused } : r
  }).catch(($, e, next) => (next.called ? next(e) : { deny: why(next.error) }))
  on('classic.PreToolUse', async ($, e, next) => {
    const r = await next(e)
    return engine(next) ? r : { deny: blame(next, 'has kept the hooks of the settings from running') }
  }).catch(($, e, next) => (next.called ? next(e) : { deny: why(next.error) }))
  on('classic.PostToolUse', async ($, e, next) => {
    keepPlace(e)
    const r = await next(e), core = engine(next)
    if (!core || !deep(core.received, e)) hidden.set(e.tool_use_id, blame(next, 'has kept the result from the hooks of the settings'))
    return r
  })

  on('prompt.submit', async ($, e, next) => {
    const said = await ask('UserPromptSubmit', { prompt: e.text })
    return said.decision === 'block' ? { drop: said.reason } : next(e)
  }).catch(($, e, next) => (next.called ? next(e) : { drop: why(next.error) }))
  on('classic.UserPromptSubmit', async ($, e, next) => {
    keepPlace(e)
    const r = await next(e)
    return engine(next) ? r : { block: blame(next, 'has kept the hooks of the settings from running') }
  }).catch(($, e, next) => (next.called ? next(e) : { block: why(next.error) }))
  on('classic.SessionStart', ($, e, next) => (keepPlace(e), next(e)))
  on('classic.SubagentStart', ($, e, next) => (keepPlace(e), next(e)))

  // Sections and tools of plugins.
  on('prompt.compose', async ($, e, next) => {
    const r = await next(e)
    const theirs = r.sections.filter((s) => !s.id.startsWith(OURS + ':'))
    if (!e.traits.includes('analysis')) { // a render that is only measured is not sent
      const answer = await ask('prompt.compose', { model: e.model }, OFFER).catch(warn)
      ours = (answer?.sections ?? []).map((s) => ({ id: OURS + ':' + s.id, text: s.text, scope: 'session' }))
      const owner = (s) => ownerOf(next, (all) => all.sections.some((x) => x.id === s.id && x.text === s.text))
      sections = [...theirs.map((s) => ({ ...s, owner: owner(s) })), ...ours.map((s) => ({ ...s, owner: OURS }))]
    }
    return { sections: [...theirs, ...ours] }
  })
  on('tool.run', async ($, e, next) => {
    if (!registered.has(e.tool)) return next(e)
    const { tool, tool_use_id, agentId, ...args } = e
    const r = await rpc('mcp/call', { tool: tool.slice(`mcp__${OURS}__`.length), arguments: args }, CALL)
    if (r.refused) return { deny: r.refused.text }
    return r.is_error ? { deny: r.text } : { result: r.text }
  }).catch(($, e, next) => (next.called || !registered.has(e.tool) ? next(e) : { deny: why(next.error) }))

  // Record: who owns what the requests hold.
  on('prompt.context', async ($, e, next) => {
    const r = await next(e)
    const owner = (list, same) => ownerOf(next, (all) => all[list].some(same))
    files = r.instructionFiles.map((f) => ({ path: f.path, kind: f.kind, content: f.content, owner: owner('instructionFiles', (x) => x.path === f.path && x.content === f.content) }))
    for (const b of r.blocks) {
      const by = owner('blocks', (x) => x.name === b.name && x.text === b.text)
      if (by !== 'claude-code') rowsOf(undefined).push({ text: b.text, owner: by, kind: 'context', id: b.name })
    }
    return r
  })
  on('session.append', async ($, e, next) => {
    const r = await next(e)
    if (!e.message.role || e.door === 'queue') return r // no request carries it
    const rows = rowsOf(e.agentId)
    for (const { type, text } of r.message?.content ?? []) {
      if (type !== 'text') continue // a request says itself whose calls and results are
      const at = next.trace.findIndex((t) => t.received?.message?.content.some((b) => b.text === text))
      rows.push({ text, owner: at > 0 ? 'mod:' + next.trace[at - 1].plugin : ownerOfRow(e.door, e.origin), kind: e.door, id: e.message.name ?? e.uuid })
    }
    return r
  })
  on('tool.describe', async ($, e, next) => {
    const { tier } = e.provider, plugin = e.provider.plugin.split('@')[0] // it may be PLUGIN@MARKETPLACE
    const owner = tier === 'core' ? 'claude-code' : plugin === OURS || plugin.startsWith('mcp:') ? plugin : 'mod:' + plugin
    tools.set(e.tool, { name: e.tool, owner, tier })
    return next(e)
  })
  on('turn.step', async function* ($, e, next) {
    const r = yield* next(e)
    const u = r.usage
    if (u && link) {
      const read = u.cache_read_input_tokens ?? 0, write = u.cache_creation_input_tokens ?? 0
      const usage = { input_tokens: u.input_tokens + read + write, output_tokens: u.output_tokens, cache_read_tokens: read, cache_write_tokens: write }
      const told = kept(ask('turn.step', { agent_id: e.agentId, model: u.model ?? e.model, usage }, USAGE))
      if (!slow) await told
    }
    return r
  })
}
