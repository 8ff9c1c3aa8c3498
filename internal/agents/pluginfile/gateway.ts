// Grapnel's plugin for HOST: it tells a gateway what happens, and does what that answers. See docs/BRIDGES.md.
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readlinkSync, type Stats } from "node:fs"
import { request } from "node:http"
import { homedir } from "node:os"
import { dirname, isAbsolute, join } from "node:path"

type Answer = { deny?: string; arguments?: Record<string, unknown>; result?: string; context?: string }

const env = process.env
const user = (process.geteuid ?? process.getuid)?.() // undefined on Windows, which has no modes to look at
const absolute = (dir?: string) => (dir && isAbsolute(dir) ? dir : undefined) // a relative one would depend on the project
const socket = env.GRAPNEL_SOCKET ?? (absolute(env.XDG_RUNTIME_DIR) ? `${env.XDG_RUNTIME_DIR}/grapnel/hook.sock` : `${homedir()}/.grapnel/hook.sock`)
const tokenFile = `${absolute(env.XDG_DATA_HOME) ?? `${homedir()}/.local/share`}/grapnel/token`
const totalTime = 60_000, mostAnswer = 16 << 20

/** Refuses what belongs to another user than this one or root. */
function own(path: string, s: Stats): Stats {
  if (user !== undefined && s.uid !== 0 && s.uid !== user) throw new Error(`${path} belongs to another user (${s.uid}): nothing was sent`)
  return s
}

/** Refuses a directory that others may write to. */
function checkDir(path: string, mayBeSticky: boolean) {
  const s = own(path, lstatSync(path))
  const others = s.gid === user && s.gid === process.getegid?.() ? 0o002 : 0o022 // a user's own group is nobody else
  if (s.mode & others && !(mayBeSticky && s.mode & 0o1000)) throw new Error(`others may write to the directory ${path}: nothing was sent; choose a directory of your own`)
}

/** Refuses a socket at which another user could listen, by the rule of grapnel-hook: see docs/SECURITY.md. */
function checkSocket() {
  if (!isAbsolute(socket)) throw new Error(`the path of the socket ${socket} is not absolute`)
  if (user === undefined) return
  let at = "/", links = 0
  for (const rest = dirname(socket).split("/"); rest.length > 0; ) {
    checkDir(at, true)
    const next = join(at, rest.shift()!)
    if (!own(next, lstatSync(next)).isSymbolicLink()) {
      at = next
      continue
    }
    if (++links > 40) throw new Error(`${socket} leads through too many links`)
    const target = readlinkSync(next)
    if (isAbsolute(target)) at = "/"
    rest.unshift(...target.split("/"))
  }
  checkDir(at, false)
  if (!own(socket, lstatSync(socket)).isSocket()) throw new Error(`${socket} is not a socket`)
}

/** Reads the token that grapnel serve made, without following a link or waiting for a pipe. */
function madeToken(): string {
  if (!isAbsolute(tokenFile)) throw new Error(`the path of the token ${tokenFile} is not absolute`)
  const file = openSync(tokenFile, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const s = own(tokenFile, fstatSync(file))
    if (!s.isFile() || (user !== undefined && s.mode & 0o077)) throw new Error(`${tokenFile} is not a file that this user alone may open; run chmod 600 on it`)
    return readFileSync(file, "utf8").trim()
  } finally { closeSync(file) }
}

/** Sends an event. It rejects where nothing was decided. */
function post(event: Record<string, unknown>): Promise<Answer> {
  let limit: ReturnType<typeof setTimeout> | undefined
  return new Promise<Answer>((resolve, reject) => {
    checkSocket()
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${env.GRAPNEL_TOKEN ?? madeToken()}` }
    const r = request({ socketPath: socket, path: `/hook/HOST?event=${event.hook_event_name}`, method: "POST", headers }, (res) => {
      let text = ""
      res.setEncoding("utf8").on("error", reject).on("data", (part: string) => {
        if ((text += part).length > mostAnswer) r.destroy(new Error("the answer is too long"))
      })
      res.on("end", () => {
        try {
          if (res.complete === false) throw new Error("the gateway broke off its answer")
          if (res.statusCode !== 200) throw new Error(text.trim())
          resolve(text ? JSON.parse(text) : {})
        } catch (e) { reject(e) }
      })
    })
    limit = setTimeout(() => {
      reject(new Error(`the gateway at ${socket} has not answered within ${totalTime / 1000} seconds`))
      r.destroy()
    }, totalTime)
    r.on("error", reject)
    r.end(JSON.stringify(event))
  }).catch((e) => { throw new Error(`Grapnel decided nothing: ${e instanceof Error ? e.message : e}`) }).finally(() => clearTimeout(limit))
}
