// What a plugin is: a value with a name, hooks and tools. definePlugin checks it at once; there is no registration.

import { encode, isObject } from "./codec.js";
import {
  alwaysAccepted, type Cache, type CallTool, type Diagnostic, type Dispatch, type Hook as Proposal, type Json, type Kind, type Kinds, type Phase,
  phases, type Phases, type PolicyEntry, type Retry, type Row, type Tool as Definition, type Ungranted,
} from "./generated.js";
import type { Host } from "./host.js";
import type { FromSchema, Schema } from "./schema.js";

/** Falsy values are "nothing to add", so that `condition && deny("…")` is an answer. */
export type Falsy = false | 0 | "" | null | undefined | void;

export type MaybePromise<T> = T | Promise<T>;

/** Answer is what a hook returns: nothing, one contribution, or a list of them, each of a kind that it lists. */
export type Answer<K extends Kind> = MaybePromise<Falsy | Kinds[K | Ungranted] | readonly (Falsy | Kinds[K | Ungranted])[]>;

/** Caller is what every handler can ask besides its input. */
export interface Caller {
  /** Aborted at the call's deadline, when the host cancels the call, and when the session ends. Pass it to what waits. */
  readonly signal: AbortSignal;
  /** The host's services. Calls share the deadline of this call. */
  readonly host: Host;
  /** Returns the value of a policy that is set and may be seen. */
  policy(domain: string, key: string): Json | undefined;
}

/** Call is one call of a hook. */
export interface Call extends Dispatch, Caller {}

/** ToolCall is one call of a tool. */
export interface ToolCall extends Omit<CallTool, "arguments">, Caller {}

/** CustomInput is the input of a phase of the host's own, or of any phase that a hook serves with `any`. */
export type CustomInput = Record<string, any>;

/** Handlers has the input and the kinds of each handler: those of the contract's phases, and any. */
export interface Handlers extends Phases {
  any: { input: CustomInput; kinds: Kind };
}

/** Handler answers with the kinds that the hook lists. Where the list is wrong it takes any, so that only the list is reported. */
export type Handler<P extends keyof Handlers, K> = (
  input: Handlers[P]["input"],
  call: Call,
) => Answer<unknown extends K ? never : [K] extends [Handlers[P]["kinds"]] ? K : Kind>;

/** Need is what a hook of a phase may need to see. */
export type Need<P extends keyof Handlers> = P extends "any" ? string : keyof Handlers[P]["input"] | "policy" | "context" | "metadata" | "nothing";

/** Settings are the fields of a hook beside its kinds, needs and handler. All are proposals to the operator. */
export interface Settings extends Omit<Proposal, "name" | "phase" | "kinds" | "needs" | "fallback"> {
  retry?: Retry;
  cache?: Cache;
}

type HookOf<P extends keyof Handlers, K> = Settings & {
  /** The kinds of contributions that the hook may answer with. */
  kinds?: readonly ((K & {}) | NoInfer<Handlers[P]["kinds"]>)[] & readonly Handlers[P]["kinds"][];
  /** What the hook must see to do its work. One that decides is not run by a host that does not grant it. */
  needs?: readonly Need<P>[];
  /** Used where on_failure says "fallback". */
  fallback?: readonly Kinds[Extract<NoInfer<K>, Kind> | Ungranted][];
} & { [Q in P]: Handler<P, NoInfer<K>> } & { [Q in Exclude<keyof Handlers, P>]?: undefined } & (P extends "any" ? { phase: Phase } : { phase?: undefined });

/** Hook is one subscription, with exactly one handler. K are the kinds that it lists; unknown are none. */
export type Hook<K = Kind> = { [P in keyof Handlers]: HookOf<P, K> }[keyof Handlers];

/** ToolResult is a tool's answer in full. */
export interface ToolResult {
  content?: unknown;
  /** The tool itself reports a failure, to the model. */
  is_error?: boolean;
  diagnostics?: readonly Diagnostic[];
}

/** Tool is one tool with its handler. A hook's bundle offers it to models. */
export interface Tool<S = any> {
  description?: string;
  /** A JSON Schema of the arguments; the handler gets only arguments that fit it. */
  input?: S;
  hidden_domain?: string;
  /**
   * Answers one call with a text, any JSON value, or a ToolResult (an object with only content, is_error and
   * diagnostics).
   */
  call: (args: FromSchema<NoInfer<S>>, call: ToolCall) => unknown;
}

/** Setup is hooks and tools: those of a plugin, and those that its configuration adds. */
export interface Setup<H extends Record<string, unknown> = any, S extends Record<string, Schema> = any> {
  hooks?: { [N in keyof H]: Hook<H[N]> };
  tools?: { [N in keyof S]: Tool<S[N]> };
}

/** Configuration is what configure gets beside the operator's configuration. */
export interface Configuration {
  /** The operator's name for this plugin. */
  instance: string;
  /** The host services that it may call. */
  services: readonly string[];
  host: Host;
}

/** Definition is a plugin as its author writes it. */
export interface PluginDefinition<H extends Record<string, unknown> = any, S extends Record<string, Schema> = any, C = any> extends Setup<H, S> {
  /** Letters, digits, _ and -. An operator may run the plugin under another name. */
  name: string;
  version: string;
  /** One line for people. */
  doc?: string;
  /** Features of the protocol that the host must have. */
  requires?: readonly string[];
  /** The most calls at once; others wait in a queue. Absent leaves it to the host. */
  concurrency?: number;
  /** A JSON Schema of the configuration. Without one the plugin takes no configuration. */
  config?: C;
  /**
   * Takes the operator's configuration, also later, while calls run. It may return hooks and tools (see setup) that
   * replace those it returned before. Throw a ConfigError to refuse; the previous configuration then stays in force.
   */
  configure?: (config: FromSchema<NoInfer<C>>, info: Configuration) => MaybePromise<Setup | void>;
  /** Ends what the plugin has started for itself, when the session ends. */
  close?: () => MaybePromise<void>;
}

/** definePlugin checks a plugin and returns it, or throws a TypeError that lists the mistakes. */
export function definePlugin<const H extends Record<string, unknown> = {}, const S extends Record<string, Schema> = {}, const C = undefined>(
  definition: PluginDefinition<H, S, C>,
): Plugin {
  return new Plugin(definition);
}

/** setup returns its argument; it gives hooks and tools that configure returns the types that definePlugin gives. */
export function setup<const H extends Record<string, unknown> = {}, const S extends Record<string, Schema> = {}>(added: Setup<H, S>): Setup<H, S> {
  return added;
}

/** tool returns its argument; it gives a tool that stands alone the types that definePlugin gives. */
export function tool<const S extends Schema = {}>(t: Tool<S>): Tool<S> {
  return t;
}

/** toolsOf returns the definitions of tools, for a bundle. */
export function toolsOf(tools: Record<string, Tool>): Definition[] {
  return Object.entries(tools).map(([name, t]) => ({
    name, description: t.description, input_schema: t.input as Json | undefined, hidden_domain: t.hidden_domain,
  }));
}

/** Bound is a hook as calls find it. */
export interface Bound {
  phase: Phase;
  /** Absent for `any`. */
  row: Row | undefined;
  handle: (input: any, call: Call) => unknown;
}

/** Ready is what is in force: the description and its handlers. */
export interface Ready {
  description: Record<string, unknown>;
  hooks: Map<string, Bound>;
  tools: Map<string, Tool>;
}

/** Plugin is a checked plugin. */
export class Plugin {
  readonly definition: PluginDefinition;
  /** What is in force before any configuration. */
  readonly initial: Ready;

  constructor(definition: PluginDefinition) {
    this.definition = definition;
    this.initial = this.ready({});
  }

  /** ready returns the plugin's own hooks and tools and those that a configuration adds, ready to be called. */
  ready(added: Setup): Ready {
    const d = this.definition;
    const mistakes: string[] = [];
    const hooks = new Map<string, Bound>();
    const proposals: Proposal[] = [];
    for (const [name, hook] of [...Object.entries(d.hooks ?? {}), ...Object.entries(added.hooks ?? {})] as [string, Hook][]) {
      if (hooks.has(name)) mistakes.push(`hook ${name}: there are two of this name`);
      const { settings, ...bound } = bind(name, hook, mistakes);
      hooks.set(name, bound);
      proposals.push({ ...settings, name, phase: bound.phase });
    }
    const tools = new Map<string, Tool>(Object.entries(d.tools ?? {}));
    for (const [name, tool] of Object.entries(added.tools ?? {}) as [string, Tool][]) {
      if (tools.has(name)) mistakes.push(`tool ${name}: there are two of this name`);
      tools.set(name, tool);
    }
    for (const [name, tool] of tools) {
      if (!isName(name)) mistakes.push(`tool ${name}: use letters, digits and _ . : / -`);
      if (typeof tool?.call !== "function") mistakes.push(`tool ${name}: has no function call`);
    }
    if (typeof d.name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(d.name)) mistakes.push("name: use letters, digits, _ and -");
    if (typeof d.version !== "string" || !/^[A-Za-z0-9][\w.+~-]{0,63}$/.test(d.version)) mistakes.push("version: use letters, digits and _ . + ~ -");
    let description = {};
    try {
      description = encode("Description", {
        name: d.name, version: d.version, doc: d.doc, requires: d.requires, config_schema: d.config, hooks: proposals,
        tools: toolsOf(Object.fromEntries(tools)), limits: d.concurrency === undefined ? undefined : { concurrency: d.concurrency },
      });
      JSON.stringify(description);
    } catch (err) {
      mistakes.push((err as Error).message);
    }
    if (mistakes.length > 0) throw new TypeError(`the plugin ${String(d.name)} is not valid:\n  ${mistakes.join("\n  ")}`);
    return { description, hooks, tools };
  }
}

function bind(name: string, hook: Hook, mistakes: string[]): Bound & { settings: object } {
  const wrong = (what: string) => void mistakes.push(`hook ${name}: ${what}`);
  if (!isName(name)) wrong("use letters, digits and _ . : / - in its name");
  const fields = Object.entries(isObject(hook) ? hook : {}).filter(([, value]) => value !== undefined);
  const isHandler = ([key]: [string, unknown]) => key === "any" || Object.hasOwn(phases, key);
  const handlers = fields.filter(isHandler);
  const settings = Object.fromEntries(fields.filter((field) => !isHandler(field)));
  const [key, handle] = handlers[0] ?? [];
  if (handlers.length !== 1 || typeof handle !== "function") wrong(`has ${handlers.length} handlers; it must have exactly one, a function`);
  if (key === "any" ? !settings.phase : settings.phase) wrong("phase goes with the handler any; other handlers say their phase");
  const row = key === undefined || key === "any" ? undefined : phases[key as keyof Phases];
  for (const kind of row && Array.isArray(settings.kinds) ? settings.kinds : []) {
    if (!row!.kinds.includes(kind) && !alwaysAccepted.includes(kind)) wrong(`the phase ${row!.phase} does not take ${kind}`);
  }
  return { phase: row?.phase ?? (settings.phase as Phase), row, handle: handle as Bound["handle"], settings };
}

function isName(name: string): boolean {
  return /^[A-Za-z0-9][\w.:/-]{0,127}$/.test(name);
}

/** policyOf finds a policy among those of a call. */
export function policyOf(policies: readonly PolicyEntry[], domain: string, key: string): Json | undefined {
  return policies.find((entry) => entry.domain === domain && entry.key === key)?.value;
}
