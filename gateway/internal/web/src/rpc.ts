// The connection to the gateway: JSON-RPC over one WebSocket, which reconnects by itself.
import { signal } from "@preact/signals";
import type { Methods, Notifications } from "./schema";

export type MethodName = keyof Methods;
export type Params<M extends MethodName> = Methods[M]["params"];
export type Result<M extends MethodName> = Methods[M]["result"];

/** An error of the gateway, or of the connection to it (code "offline"). */
export class RpcError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly data: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

export const isCode = (err: unknown, code: string): boolean => err instanceof RpcError && err.code === code;

/** Whether calls can be made now. */
export const online = signal(false);

/** Whether the connection has failed or ended, and none has come about since. */
export const broken = signal(false);

interface Waiting {
  resolve(value: unknown): void;
  reject(err: RpcError): void;
}

const firstWait = 250;
const longestWait = 5_000;

let socket: WebSocket | undefined;
let protocols: string[] = [];
let nextID = 1;
let wait = firstWait;
let timer = 0;
const waiting = new Map<number, Waiting>();
const listeners = new Map<string, Set<(params: never) => void>>();
const openers = new Set<() => void>();
let onRefused = (): void => {};

/** Connects, and again after each break, until disconnect. refused is called when a connection does not come about. */
export function connect(half: string, refused: () => void): void {
  protocols = half === "" ? ["grapnel"] : ["grapnel", "grapnel.page." + half];
  onRefused = refused;
  dial();
}

export function disconnect(): void {
  clearTimeout(timer);
  const old = socket;
  socket = undefined;
  old?.close();
  lost();
  broken.value = false;
}

function lost(): void {
  online.value = false;
  for (const w of waiting.values()) w.reject(new RpcError("offline", "The connection to the gateway was lost."));
  waiting.clear();
}

function dial(): void {
  clearTimeout(timer);
  const ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/ws", protocols);
  socket = ws;
  let opened = false;
  ws.onopen = () => {
    if (ws !== socket) return;
    opened = true;
    wait = firstWait;
    online.value = true;
    broken.value = false;
    openers.forEach((f) => f());
  };
  ws.onmessage = (event) => receive(String(event.data));
  ws.onclose = () => {
    if (ws !== socket) return; // disconnect has closed it
    lost();
    broken.value = true;
    if (!opened) onRefused();
    timer = window.setTimeout(dial, wait * (0.5 + Math.random() / 2));
    wait = Math.min(2 * wait, longestWait);
  };
}

interface Message {
  id?: number;
  method?: string;
  params?: never;
  result?: unknown;
  error?: { message: string; data?: { code?: string } & Record<string, unknown> };
}

function receive(text: string): void {
  const m = JSON.parse(text) as Message;
  if (m.method !== undefined) {
    listeners.get(m.method)?.forEach((f) => f(m.params as never));
    return;
  }
  const w = waiting.get(m.id ?? 0);
  if (!w) return;
  waiting.delete(m.id ?? 0);
  if (m.error) w.reject(new RpcError(m.error.data?.code ?? "internal", m.error.message, m.error.data));
  else w.resolve(m.result);
}

/** Calls a method. Without a connection it fails at once with the code "offline". */
export function call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
  const ws = socket;
  if (!online.value || !ws) return Promise.reject(new RpcError("offline", "There is no connection to the gateway."));
  const id = nextID++;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
    ws.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  });
}

/** Listens to a notification until the returned function is called. */
export function on<N extends keyof Notifications>(name: N, heard: (params: Notifications[N]) => void): () => void {
  const set = listeners.get(name) ?? new Set();
  listeners.set(name, set);
  set.add(heard as (params: never) => void);
  return () => set.delete(heard as (params: never) => void);
}

/** Calls open now if there is a connection, and after each reconnect, until the returned function is called. */
export function whenOnline(open: () => void): () => void {
  openers.add(open);
  if (online.value) open();
  return () => openers.delete(open);
}
