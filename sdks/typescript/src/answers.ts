// Short ways to write contributions, and the errors that a plugin throws.

import type {
  Audit, BackgroundJob, Cause, Decision, Json, ManifestDiagnostic, Noop, Policy, PromptContext, PromptSection, Reminder, Rewrite, Tool,
  ToolBundle,
} from "./generated.js";

/** More are the fields of a contribution that its helper does not take as arguments. */
export type More<C, Taken extends keyof C = never> = Omit<Partial<C>, Taken | "kind">;

function decision(verdict: Decision["verdict"], reason?: string, more?: More<Decision>): Decision {
  return { ...more, kind: "decision", verdict, reason };
}

/** deny refuses the turn or the call. The strongest verdict of all hooks wins. */
export const deny = (reason: string, more?: More<Decision>): Decision => decision("deny", reason, more);

/** ask lets a person decide. */
export const ask = (reason: string, more?: More<Decision>): Decision => decision("ask", reason, more);

/** allow is an opinion in favour; another hook may still deny. */
export const allow = (reason?: string, more?: More<Decision>): Decision => decision("allow", reason, more);

/** section is one section of the prompt. */
export function section(section_id: string, content: string, more?: More<PromptSection>): PromptSection {
  return { ...more, kind: "prompt_section", section_id, content };
}

/** context is text for the dynamic context or, with render false, for later hooks only. */
export function context(content: string, more?: More<PromptContext>): PromptContext {
  return { ...more, kind: "prompt_context", content };
}

/** reminder is a message beside the conversation. */
export function reminder(type: string, text: string, more?: More<Reminder>): Reminder {
  return { ...more, kind: "reminder", type, text };
}

/** rewrite replaces one value in a tool's arguments or result; path is a JSON pointer. */
export function rewrite(path: string, value: Json, more?: More<Rewrite>): Rewrite {
  return { ...more, kind: "rewrite", path, value };
}

/** policy sets one value for the rest of the turn. */
export function policy(domain: string, key: string, value: Json, more?: More<Policy>): Policy {
  return { ...more, kind: "policy", domain, key, value };
}

/** bundle offers tools that this plugin answers. */
export function bundle(bundle_id: string, tools: readonly Tool[], more?: More<ToolBundle>): ToolBundle {
  return { ...more, kind: "tool_bundle", bundle_id, tools };
}

/** audit is an event for the audit trail. */
export function audit(event_kind: string, details?: Json, more?: More<Audit>): Audit {
  return { ...more, kind: "audit", event_kind, details };
}

/** job asks for work to be done later by the tool of this plugin that job_kind names, or by a handler of the host. */
export function job(job_kind: string, payload?: Json, more?: More<BackgroundJob>): BackgroundJob {
  return { ...more, kind: "background_job", job_kind, payload };
}

/** diagnostic puts a remark into the manifest. */
export function diagnostic(code: string, message: string, more?: More<ManifestDiagnostic>): ManifestDiagnostic {
  return { ...more, kind: "manifest_diagnostic", code, message };
}

/** noop says "I ran and have nothing to add". So does a handler that returns nothing. */
export const noop = (): Noop => ({ kind: "noop" });

/** PluginError makes a call fail with a code of the plugin's own, such as "upstream_down". */
export class PluginError extends Error {
  override name = "PluginError";
  readonly code: string;
  /** The same call may succeed later. */
  readonly retryable: boolean;
  /** The message may be shown outside the operator's log. */
  readonly safe_for_user: boolean;

  constructor(code: string, message: string, options: { retryable?: boolean; safe_for_user?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.safe_for_user = options.safe_for_user ?? false;
  }
}

/** ConfigError refuses a configuration. pointer is a JSON pointer to the mistake; "" is the whole configuration. */
export class ConfigError extends Error {
  override name = "ConfigError";
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

/** HostError is the host's refusal of a host call. */
export class HostError extends Error {
  override name = "HostError";
  readonly code: Cause | (string & {});
  /** The host service's own word, if any. */
  readonly plugin_code: string;
  readonly retryable: boolean;

  constructor(code: string, message: string, plugin_code = "", retryable = false) {
    super(message);
    this.code = code;
    this.plugin_code = plugin_code;
    this.retryable = retryable;
  }
}
