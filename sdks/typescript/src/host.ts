// What a plugin may ask of its host.

import type { Diagnostic, Json, Stop, Usage } from "./generated.js";

/** Host is the host's services. A call fails with a HostError; be ready to do without. */
export interface Host {
  /** Asks any service by name. */
  call(service: string, method: string, params?: unknown): Promise<any>;
  /** Says that remembered answers are not true any more: those of subscriptions, under tags, or all. */
  invalidate(what?: { subscriptions?: readonly string[]; tags?: readonly string[] }): Promise<void>;
  /** One value for each session, at most 64 KiB. Every host has this service. */
  readonly state: {
    /** Returns what was put last, or null. Without `of` the session is that of the turn. */
    get(of?: Session): Promise<Json>;
    /** Keeps a value; null removes it. */
    put(value: Json, of?: Session): Promise<void>;
  };
  /** The host's model. Asked only in the course of a call, which it is charged to. */
  readonly model: { complete(request: CompletionRequest): Promise<CompletionResponse> };
  /** The AGENTS.md documents of a gateway. */
  readonly documents: {
    /** Finds the document in effect for a thread; without `of` that of the call. */
    resolveForThread(of?: { workspace_id?: string; thread_id?: string }): Promise<{ effective: Effective | null; diagnostics: Diagnostic[] }>;
  };
}

/** Session names a session. */
export interface Session {
  session_id?: string;
  workspace_id?: string;
}

/** CompletionRequest is what a plugin asks a model; the host chooses the model. */
export interface CompletionRequest {
  /** The text that the model works on. With system and schema at most 64 KiB. */
  input: string;
  /** The instructions. */
  system?: string;
  /** A JSON Schema of the answer. The answer is then JSON, and may still not fit the schema. */
  schema?: unknown;
  schema_name?: string;
  max_output_tokens?: number;
  /** A word or two for the host's records. */
  purpose?: string;
}

/** CompletionResponse is a model's answer. */
export interface CompletionResponse {
  text: string;
  model: string;
  usage: Usage;
  stopped: Stop;
}

/** Effective is the document in effect for a thread. */
export interface Effective {
  doc: { id: string; title: string; content: string; version: number; [field: string]: Json };
  source_folder_id: string;
  /** The names of the folders from the root down to the one that has the document. */
  source_path: string[];
  /** The document belongs to another folder than the one asked for. */
  inherited: boolean;
  resolved_for_folder_id: string;
  resolved_at: string;
}

/** Ask sends one frame of the plugin's own and waits for the host's answer. */
export type Ask = (body: { host_call: Record<string, unknown> } | { invalidate: Record<string, unknown> }) => Promise<any>;

/** hostOf makes a Host of a way to ask. */
export function hostOf(ask: Ask): Host {
  const call = (service: string, method: string, params?: unknown) => ask({ host_call: { service, method, params_json: params } });
  return {
    call,
    invalidate: async (what = {}) => void (await ask({ invalidate: { subscriptions: what.subscriptions, tags: what.tags } })),
    state: {
      get: async (of = {}) => (await call("state", "get", of))?.value ?? null,
      put: async (value, of = {}) => void (await call("state", "put", { ...of, value })),
    },
    model: { complete: (request) => call("model", "complete", request) },
    documents: { resolveForThread: (of = {}) => call("documents", "resolve_for_thread", of) },
  };
}
