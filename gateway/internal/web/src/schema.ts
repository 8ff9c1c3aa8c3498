// Code generated from "grapnel schema rpc" by gateway/internal/web/build. DO NOT EDIT.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

interface AgentsDoc {
  chars: number;
  content_sha256: string;
  /** a folder's id; null is the root */
  folder_id: null | string;
  id: string;
  status: "draft" | "active" | "archived";
  updated_at: string;
  version: number;
}

interface AssistantText {
  chars: number;
  withheld: boolean;
}

interface Background {
  attempts: number;
  code: string;
  contributions: ("policy" | "prompt_context" | "prompt_section" | "tool_bundle" | "decision" | "rewrite" | "reminder" | "manifest_diagnostic" | "audit" | "background_job" | "noop")[];
  diagnostics: CallResultDiagnostic[];
  duration_ms: number;
  kind: string;
  phase: string;
  plugin: string;
  plugin_code: string;
  state: "succeeded" | "denied" | "failed" | "timed_out" | "cancelled" | "filtered" | "disabled" | "unavailable" | "budget_exhausted" | "cached" | "shadowed" | "queued";
  subscription: string;
}

interface Budget {
  granted_ms: number;
  spent_by: {
    ms: number;
    subscription: string;
  }[];
  used_ms: number;
}

interface Call {
  call_id?: string;
  came: string;
  code?: string;
  decided_by?: ({
    contribution_id?: string;
    reason_code?: string;
    shadow?: boolean;
    subscription: string;
    verdict: "allow" | "ask" | "deny";
  })[];
  facts?: string[];
  facts_hash?: string;
  input?: null | {
    arguments?: string;
    at: string;
    chars?: number;
    omitted?: number;
    place: string;
  };
  owner?: string;
  phase: string;
  rewritten_by?: string[];
  state?: "succeeded" | "denied" | "failed" | "timed_out" | "cancelled" | "filtered" | "disabled" | "unavailable" | "budget_exhausted" | "cached" | "shadowed" | "queued";
  tool?: string;
  verdict?: "allow" | "ask" | "deny";
  went: string;
}

interface CallParams {
  actor?: string;
  /** what a person said about a call whose last answer was the verdict ask. A denied call stays denied */
  allowed?: null | boolean;
  /** the arguments as the model wrote them: a JSON object */
  arguments?: Json;
  /** the id that the model gave the call: reminders name it, and the same call of a plugin's tool again does nothing twice */
  call_id?: string;
  /** the turn, as turn/begin gave it */
  handle: string;
  /** files and directories that the call is about */
  paths?: string[];
  /** the tool's name */
  tool: string;
}

interface CallResult {
  /** whether text is not what the tool gave */
  changed: boolean;
  /** the record of the prompt in force when hooks decided about the call; absent if none did, or no prompt is known */
  decision_ref?: null | DecisionRef;
  diagnostics: CallResultDiagnostic[];
  /** why the tool did not answer; absent if it did */
  error?: null | CallResultError;
  /** whether the result tells the model of a failure */
  is_error: boolean;
  /** why the call was not made; absent if it was */
  refused?: null | Refused;
  /** the result for the model: hooks may have rewritten it, and it is trimmed to the turn's max_result_chars */
  text: string;
}

interface CallResultDiagnostic {
  cause?: string;
  code: string;
  message: string;
  other_subscription: string;
  plugin: string;
  severity: "info" | "warning" | "error";
  slot: string;
  subscription: string;
}

interface CallResultError {
  code: string;
  decision_ref?: null | DecisionRef;
  message: string;
  phase: string;
  subscription: string;
}

interface Change {
  id?: string;
  kind: string;
  manifest?: string;
  sent?: string;
}

interface Context {
  actor?: {
    id?: string;
    kind?: string;
  };
  agent_id?: string;
  conversation_thread_id?: string;
  dir?: string;
  dir_root?: string;
  epoch?: number;
  flags?: { [name: string]: boolean };
  metadata?: { [name: string]: Json };
  mode?: string;
  now?: string;
  parent_session_id?: string;
  profile?: "full" | "minimal" | "none";
  session_id?: string;
  task_id?: string;
  thread_id?: string;
  turn_id?: string;
  workspace_id?: string;
}

interface Contribution {
  hash: string;
  hook: string;
  kind: "policy" | "prompt_context" | "prompt_section" | "tool_bundle" | "decision" | "rewrite" | "reminder" | "manifest_diagnostic" | "audit" | "background_job" | "noop";
  plugin: string;
  subscription: string;
  value: {
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    key: string;
    priority?: number;
    value: Json;
  } | {
    content: string;
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    max_chars?: number;
    priority?: number;
    render?: null | boolean;
    source_refs?: Ref[];
  } | {
    content: string;
    contribution_id?: string;
    cut?: null | {
      kept: number;
      original: number;
    };
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    frame?: null | {
      close?: string;
      open?: string;
    };
    max_chars?: number;
    placement?: "system" | "system_message" | "user_message";
    priority?: number;
    section_id: string;
    source_refs?: Ref[];
    stability?: "stable" | "dynamic";
    title?: string;
  } | {
    bundle_id: string;
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    priority?: number;
    tools: ToolsResultTool[];
  } | {
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    priority?: number;
    reason?: string;
    reason_code?: string;
    verdict: "allow" | "ask" | "deny";
  } | {
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    path: string;
    priority?: number;
    value: Json;
  } | {
    attributes?: { [name: string]: string };
    contribution_id?: string;
    dedupe_key?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    priority?: number;
    text: string;
    type: string;
  } | {
    code: string;
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    message?: string;
    priority?: number;
    safe_for_user?: boolean;
    severity?: "info" | "warning" | "error";
  } | {
    contribution_id?: string;
    details?: Json;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    event_kind: string;
    priority?: number;
    safe_for_user?: boolean;
  } | {
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    idempotency_key?: string;
    job_kind: string;
    not_before?: string;
    payload?: Json;
    priority?: number;
  } | {
    contribution_id?: string;
    diagnostics?: CallResultDiagnostic[];
    domain?: string;
    priority?: number;
  };
}

interface Decision {
  reasons: ({
    contribution_id?: string;
    reason: string;
    reason_code: string;
    subscription: string;
    verdict: "allow" | "ask" | "deny";
  })[];
  verdict: "allow" | "ask" | "deny";
}

interface DecisionRef {
  manifest_id: string;
  seq: number;
}

interface Diagnostic {
  cause?: string;
  code: string;
  hook_source: string;
  message: string;
  section_id: string;
  severity: "info" | "warning" | "error";
}

interface Doc {
  content: string;
  content_sha256: string;
  created_at: string;
  created_by: string;
  /** a folder's id; null is the root */
  folder_id: null | string;
  id: string;
  status: "draft" | "active" | "archived";
  title: string;
  updated_at: string;
  updated_by: string;
  version: number;
  workspace_id: string;
}

interface Effective {
  doc: Doc;
  inherited: boolean;
  resolved_at: string;
  /** a folder's id; null is the root */
  resolved_for_folder_id: null | string;
  /** a folder's id; null is the root */
  source_folder_id: null | string;
  source_path: string[];
}

interface EndResult {
  background?: Background[];
  budget: Budget;
  contributions: Contribution[];
  decision: null | Decision;
  decision_ref?: null | DecisionRef;
  diagnostics: CallResultDiagnostic[];
  error: null | CallResultError;
  merged: Merged;
  phase: string;
  plugins: Plugin[];
  runs: Run[];
  shadowed?: Contribution[];
}

interface Entry {
  calls?: {
    arguments?: Json;
    id: string;
    tool: string;
  }[];
  id?: string;
  media?: {
    data?: string;
    name?: string;
    tokens?: number;
    type: string;
    uri?: string;
  }[];
  native?: null | {
    data: Json;
    provider: string;
  };
  results?: {
    call_id: string;
    is_error?: boolean;
    text: string;
    tool?: string;
  }[];
  role: "user" | "assistant" | "tool";
  text?: string;
  turn_id?: string;
}

interface Event {
  code: string;
  kind: string;
  /** debug, info, warn or error */
  level: string;
  message: string;
  phase: string;
  plugin: string;
  state: string;
  subscription: string;
  time: string;
}

interface File {
  from: null | string;
  name: string;
  to: null | string;
  what: "added" | "removed" | "changed" | "reowned";
}

interface First {
  actor?: string;
  created_at: string;
  fingerprint_full: string;
  hash: string;
  kind: string;
  manifest_id: string;
  profile: "full" | "minimal" | "none";
  seq: number;
  thread_id: string;
  turn_id: string;
  workspace_id: string;
}

interface Folder {
  id: string;
  name: string;
  /** a folder's id; null is the root */
  parent_id: null | string;
}

interface From {
  granted_chars: number;
  granted_ms: number;
}

interface GetParams {
  actor?: string;
  /** an id, which may be shortened, or the word latest */
  manifest_id: string;
  /** only manifests of this thread */
  thread_id?: string;
  /** only manifests of this workspace; a token that is bound to workspaces names one */
  workspace_id?: string;
}

interface Grants {
  contribute?: string[];
  domains?: string[];
  host?: string[];
  join?: string[];
  net?: string[];
  policies?: string[];
  read?: string[];
  sections?: string[];
  see?: string[];
  stable_sections?: string[];
  tools?: string[];
  write?: string[];
}

interface HistoryFrom {
  added?: {
    chars: number;
    hash: string;
    id?: string;
    kind: string;
    message: number;
    owner: string;
    role: string;
  }[];
  cached?: number;
  cut?: number;
  entries: number;
  hash: string;
  previous?: string;
  repaired?: number;
  same?: number;
  summarized?: number;
}

interface LastError {
  at: string;
  code: string;
  message: string;
  plugin_code: string;
}

interface ListResult {
  items: ({
    category: string;
    created_at: string;
    /** the original wording; empty if it is not known */
    evidence: string;
    id: string;
    /** when it last went into a prompt; null is never */
    last_used_at: null | string;
    scope: string;
    /** the thread, agent or user; empty for a workspace's items */
    scope_id: string;
    /** how well it fits what was searched for; null in a list */
    score: null | number;
    /** the question that the item alone answers; empty for most */
    slot: string;
    text: string;
    /** when it was made, or last confirmed */
    updated_at: string;
    /** how many prompts it went into */
    uses: number;
    workspace_id: string;
  })[];
  /** cursor for the next page; empty at the end */
  next: string;
}

interface Merged {
  contexts: ({
    content: string;
    contribution_id: string;
    domain: string;
    owner: string;
    priority: number;
    render: boolean;
    source_refs: Ref[];
    truncation: null | Truncation;
  })[];
  policies: Policy[];
  reminders: MergedReminder[];
  rewrites: {
    owner: string;
    path: string;
    value: Json;
  }[];
  sections: ({
    content: string;
    owner: string;
    priority: number;
    section_id: string;
    stability: "stable" | "dynamic";
    truncation: null | Truncation;
  })[];
  tools: {
    bundle_id: string;
    name: string;
    owner: string;
  }[];
}

interface MergedReminder {
  attributes?: { [name: string]: string };
  contribution_id?: string;
  dedupe_key?: string;
  owner: string;
  text: string;
  type: string;
}

interface Message {
  role: string;
  section_id: string;
  text: string;
}

interface Omitted {
  chars: number;
  id: string;
  owner: string;
  reason: string;
}

interface Plan {
  breakpoints?: ({
    after: "tools" | "stable" | "dynamic";
    section_id?: string;
  })[];
  key?: string;
}

interface Plugin {
  absent_paths?: string[];
  code: string;
  detail: string;
  generation: number;
  grant_hash?: string;
  pinned?: boolean;
  plugin: string;
  recycled?: number;
  restarts: number;
  sha256: string;
  state: "declared" | "starting" | "ready" | "degraded" | "backoff" | "quarantined" | "draining" | "stopped";
  tier: string;
  tier_lacks?: string[];
  version: string;
}

interface PluginFrom {
  grant_hash?: string;
  sha256: string;
  state: "declared" | "starting" | "ready" | "degraded" | "backoff" | "quarantined" | "draining" | "stopped";
  version: string;
}

interface Policy {
  domain: string;
  key: string;
  owner: string;
  priority: number;
  value: Json;
}

interface PolicyFrom {
  owner: string;
  priority: number;
  value: Json;
}

interface Ref {
  hash?: string;
  id?: string;
  kind: string;
  label?: string;
}

interface Refused {
  /** the subscription that decided, if one did */
  by?: string;
  reason?: string;
  reason_code?: string;
  /** the result of the call for the model, unless a person allows it */
  text: string;
  /** deny; or ask: a person may allow the call. Ask one, and make the same call of this method again with allowed */
  verdict: "allow" | "ask" | "deny";
}

interface ReloadResult {
  /** who called; empty for the other causes */
  actor: string;
  /** when it ended */
  at: string;
  /** signal is SIGHUP, watch a file that has changed, call the method config/reload */
  cause: "signal" | "watch" | "call";
  /** changed keys */
  changed: string[];
  /** the file of the configuration; empty if it is unknown */
  config: string;
  /** why it failed, for people; empty if it did not */
  error: string;
  /** the mistakes in the file, each with its place */
  mistakes: {
    column: number;
    file: string;
    line: number;
    message: string;
    snippet: string;
  }[];
  /** changed keys that only a restart puts in force; nothing else was changed either */
  needs_restart: string[];
  /** false: nothing was changed, for the reason in error */
  ok: boolean;
  /** how many tokens were read; null without a token file */
  tokens: null | number;
  took_ms: number;
}

interface Reminder {
  chars: number;
  contribution_id: string;
  fingerprint: string;
  hash: string;
  owner: string;
  type: string;
  with?: string;
}

interface RemoveParams {
  actor?: string;
  /** dead jobs, 1000 at most */
  ids: number[];
}

interface Row {
  actor?: string;
  blocked: boolean;
  cache_actual: null | number;
  cache_predicted: null | number;
  chars: number;
  created_at: string;
  cut_sections: number;
  denied: boolean;
  diagnostics: number;
  failed_runs: number;
  fingerprint_full: string;
  hash: string;
  input_tokens: null | number;
  kind: string;
  manifest_id: string;
  omitted: number;
  profile: "full" | "minimal" | "none";
  seq: number;
  thread_id: string;
  tokens: null | number;
  turn_id: string;
  workspace_id: string;
}

interface Run {
  attempts: number;
  bytes_in: number;
  bytes_out: number;
  cached_from: string;
  code: string;
  contributions: string[];
  cut: ({
    contribution_id: string;
    kept: number;
    limit: "plugin" | "contribution" | "subscription" | "section" | "total";
    original: number;
    section_id?: string;
  })[];
  duration_ms: number;
  generation: number;
  hook: string;
  incarnation: number;
  layer: number;
  model?: string;
  phase: string;
  plugin: string;
  plugin_code: string;
  plugin_version: string;
  queue_ms: number;
  reason_code?: string;
  rewritten_by?: string[];
  stage: "transform" | "contribute" | "validate" | "observe" | "tool" | "host";
  state: "succeeded" | "denied" | "failed" | "timed_out" | "cancelled" | "filtered" | "disabled" | "unavailable" | "budget_exhausted" | "cached" | "shadowed" | "queued";
  subscription: string;
  usage?: Usage;
  verdict?: "allow" | "ask" | "deny";
}

interface RunFrom {
  code?: string;
  plugin: string;
  state: "succeeded" | "denied" | "failed" | "timed_out" | "cancelled" | "filtered" | "disabled" | "unavailable" | "budget_exhausted" | "cached" | "shadowed" | "queued";
  verdict?: "allow" | "ask" | "deny";
}

interface Section {
  chars: number;
  content_map: {
    contribution_id?: string;
    length: number;
    offset: number;
    owner: string;
  }[];
  fingerprint: string;
  hash: string;
  original_chars: number;
  owner: string;
  placement: "system" | "system_message" | "user_message";
  position: number;
  section_id: string;
  source_refs: Ref[];
  stability: "stable" | "dynamic";
  title: string;
  tokenizer?: string;
  tokens?: null | number;
  truncation: null | Truncation;
}

interface Source {
  cached_from: string;
  contribution_hash: string;
  contribution_id: string;
  contribution_kind: "policy" | "prompt_context" | "prompt_section" | "tool_bundle" | "decision" | "rewrite" | "reminder" | "manifest_diagnostic" | "audit" | "background_job" | "noop";
  hook_id: string;
  phase: string;
  plugin: string;
  plugin_version: string;
  priority: number;
  section_id: string;
  source_count: number;
  subscription_id: string;
  truncation: string;
}

interface Text {
  original_length?: number;
  text?: string;
  truncated?: boolean;
}

interface Thread {
  /** a folder's id; null is the root */
  folder_id: null | string;
  id: string;
  title: string;
}

interface ThreadParams {
  actor?: string;
  thread_id: string;
  workspace_id: string;
}

interface Took {
  count: number;
  max_ms: number;
  p50_ms: number;
  p99_ms: number;
}

interface Tool {
  bundle_id: string;
  hash: string;
  hidden_domain?: string;
  name: string;
  owner: string;
}

interface ToolFrom {
  bundle_id: string;
  hash: string;
  hidden_domain?: string;
  owner: string;
}

interface ToolsResultTool {
  description?: string;
  hidden_domain?: string;
  input_schema?: Json;
  name: string;
}

interface Truncation {
  kept: number;
  limit: "plugin" | "contribution" | "subscription" | "section" | "total";
  original: number;
}

interface UnwatchParams {
  actor?: string;
  /** only manifests of this workspace; a token that is bound to workspaces names one */
  workspace_id?: string;
}

interface UnwatchResult {
  /** not everything since since_seq can be sent: read again */
  gap: boolean;
  /** everything up to this place was sent, or could be read */
  seq: number;
}

interface Usage {
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  input_tokens?: number;
  output_tokens?: number;
}

interface Workspace {
  id: string;
  name: string;
}

/** Params and results of the methods. */
export interface Methods {
  /** Interrupts the backtest that runs: it answers with what it has judged. Right: admin. */
  "backtest/cancel": {
    params: {
      actor?: string;
    };
    result: {
      /** whether one was running */
      interrupted: boolean;
    };
  };
  /** Lists the configurations that backtest/run can have judge, and the agents whose transcripts it can read. Right: admin. */
  "backtest/configs": {
    params: {
      actor?: string;
    };
    result: {
      /** those whose transcripts can be read, and log: the calls that Grapnel has kept (manifest.keep_inputs) */
      agents: string[];
      /** the one in force first */
      configs: {
        /** why it cannot be chosen; empty if it can */
        error: string;
        /** whether it is the gateway's own */
        in_force: boolean;
        /** the file's name, without its directory */
        name: string;
      }[];
    };
  };
  /** Has a configuration judge what the user's agents did, as "grapnel backtest" does, one run at a time. Sends backtest/progress over a WebSocket meanwhile. The answer has the newest 500 rows; rows_omitted counts the others too. A run that is cancelled, or whose connection ends, keeps what it has judged for the next one. Right: admin. */
  "backtest/run": {
    params: {
      actor?: string;
      /** the name of another one: only what the two decide differently is reported */
      against?: string;
      /** only transcripts of this one of the agents that backtest/configs lists */
      agent?: string;
      /** the name of a configuration, as backtest/configs lists it */
      config: string;
      /** how many days before now, 3650 at most */
      days: number;
    };
    result: {
      /** the configuration that it is compared with: then rows are what the two decide differently */
      against?: string;
      /** calls by verdict: allow, deny, ask, rewrite, fail */
      calls: { [name: string]: number };
      /** hooks and their reasons, the most frequent first */
      causes: {
        calls: number;
        hook: string;
        verdict: string;
        why: string;
      }[];
      config: string;
      days: {
        day: string;
        /** calls with a row */
        hits: number;
        judged: number;
      }[];
      /** what became then of the calls that would be denied: ran, failed, refused, or nothing known */
      denied: { [name: string]: number };
      /** calls of hooks that only observe, and background jobs: a dry run makes none */
      dropped: number;
      /** what became of the denied calls, where that suggests false alarms; else empty */
      hint: string;
      /** plugins that took no part, and why */
      not_run: {
        plugin: string;
        why: string;
      }[];
      /** sets of rules that come along: they judged, as the configuration in force judges no calls */
      offered?: string[];
      /** it was interrupted: what is here was judged before */
      partial: boolean;
      /** prompts by verdict */
      prompts: { [name: string]: number };
      read: {
        /** agents with the number of their files, and the log with that of its threads */
        agents: string[];
        /** files whose results are those of an earlier run */
        before: number;
        files: number;
        /** what was not read, and why */
        omitted: string[];
        /** files that could not be read, or not to their end */
        problems: {
          path: string;
          why: string;
        }[];
        sessions: number;
        /** lines that were not understood */
        unknown: number;
        /** agents and their versions, as transcripts say */
        versions: string[];
      };
      results: number;
      /** results that would have reached the model changed, such as without secrets */
      rewritten: number;
      /** calls and prompts that would not have been allowed as they were, the newest first */
      rows: {
        agent: string;
        /** what became of the call then: ran, failed, refused, or empty if the transcript does not say */
        became: string;
        by: {
          /** the hook's own word for the reason, or why it failed */
          code: string;
          /** the subscription, or the plugin that rewrote; empty if no hook could be asked */
          hook: string;
          reason: string;
        }[];
        /** the call in one line; secrets are hidden, here and below */
        call: string;
        dir: string;
        /** the prompt of the turn */
        prompt: string;
        /** the agent's word for who refused it */
        refused: string;
        session: string;
        /** the call without its numbers, directories and texts */
        shape: string;
        time: string;
        tool: string;
        /** allow, deny, ask, rewrite or fail (denied because a hook failed) */
        verdict: string;
        /** the verdict of the other configuration */
        was?: string;
      }[];
      /** rows that are counted, but not here */
      rows_omitted: number;
      /** the ten commonest shapes of the calls in rows */
      shapes: {
        calls: number;
        shape: string;
      }[];
      since?: string;
      /** what was judged and what would have been denied, in a sentence */
      summary: string;
    };
  };
  /** Reads configuration and tokens again and puts them in force, all or nothing. A refused one is a result that says why. Right: admin. */
  "config/reload": {
    params: {
      actor?: string;
    };
    result: ReloadResult;
  };
  /** Stops that. Right: admin. */
  "events/unwatch": {
    params: {
      actor?: string;
    };
    result: Record<string, never>;
  };
  /** Returns the last events of the engine, and sends event for further ones over this connection; of the level debug at most 100 a second. Right: admin. */
  "events/watch": {
    params: {
      actor?: string;
    };
    result: {
      /** those that are remembered, the oldest first */
      events: Event[];
    };
  };
  /** Creates a folder. Creating it again, with an id of the caller's, returns the existing one. Right: write. */
  "folder/create": {
    params: {
      actor?: string;
      id?: string;
      name: string;
      /** a folder's id; null is the root */
      parent_id?: null | string;
      workspace_id: string;
    };
    result: {
      folder: Folder;
    };
  };
  /** Deletes a folder. One that is not empty needs recursive: folders below are deleted too, documents are archived, threads move to the parent. Right: write. */
  "folder/delete": {
    params: {
      actor?: string;
      folder_id: string;
      recursive?: boolean;
      workspace_id: string;
    };
    result: {
      folder: Folder;
    };
  };
  /** Moves a folder to another parent; null is the root. It cannot move below itself. Right: write. */
  "folder/move": {
    params: {
      actor?: string;
      folder_id: string;
      /** a folder's id; null is the root */
      parent_id?: null | string;
      workspace_id: string;
    };
    result: {
      folder: Folder;
    };
  };
  /** Renames a folder. Right: write. */
  "folder/rename": {
    params: {
      actor?: string;
      folder_id: string;
      name: string;
      workspace_id: string;
    };
    result: {
      folder: Folder;
    };
  };
  /** Runs the phases that an event of an agent's hook stands for, and returns the answer that this agent takes; see docs/BRIDGES.md. POST /hook/HOST does the same for agents that call a server. Right: dispatch. */
  "hook/event": {
    params: {
      actor?: string;
      /** the event that the hook is installed for; a payload that names another one is refused */
      event?: string;
      /** the agent: amp, claude-code, codex, copilot, cursor, gemini, opencode or vscode */
      host: string;
      /** what the agent gave its hook */
      payload: Json;
      /** where its sessions are threads; local if absent, which is made if it is missing */
      workspace_id?: string;
    };
    result: {
      /** what the agent takes for an answer; null where there is nothing to say */
      answer: Json;
    };
  };
  /** Lists background work that is kept in the database, as "grapnel jobs list" and "grapnel jobs dead" do. Right: admin. */
  "jobs/list": {
    params: {
      actor?: string;
      /** the next of an earlier call */
      after?: number;
      /** so many: 50 if absent, 1000 at most */
      limit?: number;
      /** waiting, scheduled, running or dead; absent for all that are not dead */
      state?: string;
    };
    result: {
      /** of all jobs, whatever was asked for */
      counts: {
        dead: number;
        oldest_seconds: number;
        running: number;
        scheduled: number;
        waiting: number;
      };
      jobs: ({
        added_at: string;
        /** how often it was tried, the attempt that runs included */
        attempts: number;
        /** when the last attempt began, or its lease was renewed; null is never */
        begun_at: null | string;
        /** why the last attempt failed; interrupted: it ended without a result, and may have been done; empty if none has failed */
        code: string;
        /** when it may be tried */
        due_at: string;
        /** when it was discarded; null is not yet */
        ended_at: null | string;
        id: number;
        /** job_kind of a background_job; empty for an observing hook */
        kind: string;
        /** the phase that a hook observes; empty for a background_job */
        phase: string;
        plugin: string;
        /** how often it was put off since */
        requeued: number;
        /** waiting, scheduled, running or dead */
        state: string;
        /** the hook, or the one that asked for the job */
        subscription: string;
        thread_id: string;
        turn_id: string;
        workspace_id: string;
      })[];
      /** after for the next page; 0 at the end */
      next: number;
    };
  };
  /** Removes dead jobs for good, as "grapnel jobs remove" does. Right: admin. */
  "jobs/remove": {
    params: RemoveParams;
    result: {
      /** those that there were */
      ids: number[];
    };
  };
  /** Puts dead jobs back into the queue, as "grapnel jobs retry" does. Right: admin. */
  "jobs/retry": {
    params: RemoveParams;
    result: {
      /** those that there were */
      ids: number[];
    };
  };
  /** Says what broke the provider's prompt cache in a thread, as "grapnel manifest blame" does. Right: read. */
  "manifest/blame": {
    params: {
      actor?: string;
      /** the newest so many prompts: 100 if absent, 1000 at most */
      limit?: number;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      /** there are older prompts, which are not judged here */
      older: boolean;
      /** one entry per prompt that was sent, oldest first; of several workspaces one after another */
      turns: ({
        actual: null | number;
        because?: string;
        broke_at: string;
        cause?: string;
        expected: boolean;
        field?: string;
        manifest_id: string;
        of_agent?: boolean;
        owner: string;
        seq: number;
        thread_id: string;
        tokens_lost: number;
        tool?: string;
        turn_id: string;
        workspace_id: string;
      })[];
    };
  };
  /** Compares two kept manifests, as "grapnel manifest diff" does. Right: read. */
  "manifest/diff": {
    params: {
      /** the earlier manifest: an id, which may be shortened, or the word latest */
      a: string;
      actor?: string;
      /** the later one */
      b: string;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      break?: null | {
        because?: string;
        broke_at: string;
        cause?: string;
        field?: string;
        owner: string;
        tokens_lost: number;
        tool?: string;
      };
      budgets: ({
        from: null | From;
        name: string;
        to: null | From;
        what: "added" | "removed" | "changed" | "reowned";
      })[];
      files: File[];
      head: File[];
      history: ({
        from: null | HistoryFrom;
        name: string;
        to: null | HistoryFrom;
        what: "added" | "removed" | "changed" | "reowned";
      })[];
      host_tools: File[];
      omitted: File[];
      plugins: ({
        from: null | PluginFrom;
        name: string;
        to: null | PluginFrom;
        what: "added" | "removed" | "changed" | "reowned";
      })[];
      policies: ({
        from: null | PolicyFrom;
        name: string;
        to: null | PolicyFrom;
        what: "added" | "removed" | "changed" | "reowned";
      })[];
      reminders: File[];
      runs: ({
        from: null | RunFrom;
        name: string;
        to: null | RunFrom;
        what: "added" | "removed" | "changed" | "reowned";
      })[];
      same: boolean;
      sections: {
        added: string[];
        changed: string[];
        moved: string[];
        removed: string[];
        reowned: string[];
      };
      texts?: {
        section_id: string;
        unified: string;
      }[];
      tools: ({
        from: null | ToolFrom;
        name: string;
        to: null | ToolFrom;
        what: "added" | "removed" | "changed" | "reowned";
      })[];
    };
  };
  /** Says why a section, subscription, plugin or tool is, or is not, in a kept prompt, or who wrote a sentence of it, as "grapnel explain" does. Right: read. */
  "manifest/explain": {
    params: {
      actor?: string;
      /** a section, subscription, plugin or tool */
      id?: string;
      /** an id, which may be shortened, or the word latest */
      manifest_id: string;
      /** or a piece of the prompt, as it stands there, whose texts were kept */
      sentence?: string;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: null | {
      /** the record of events that was named, if this is about the prompt before it */
      asked?: string;
      /** what was decided about the tool, or by the hook or plugin */
      calls: Call[];
      /** remarks about the section or its hooks */
      diagnostics: Diagnostic[];
      /** the contributions that were kept */
      hook_sources: Source[];
      /** what was asked about */
      id: string;
      /** whether the section or the sentence is in the prompt, anything of the subscription or plugin was kept or decided, or the model was offered the tool */
      in: boolean;
      kind: string;
      /** the manifest that this is about */
      manifest_id: string;
      /** what was dropped, and why */
      omitted: Omitted[];
      /** the plugins concerned */
      plugins: Plugin[];
      /** the reminders that were handed over */
      reminders: Reminder[];
      /** the hook runs concerned; of a section that nobody contributed those that could have */
      runs: Run[];
      /** who wrote which piece of the sentence, and where it stands */
      said: {
        contribution_id?: string;
        length: number;
        offset: number;
        owner: string;
        plugin_version?: string;
        /** the section that it stands in, or reminder */
        section_id: string;
        /** the hook that brought it; absent from texts of the host and the engine */
        subscription_id?: string;
        /** the piece of what was asked about */
        text: string;
      }[];
      /** the section itself, or those with text of the subscription */
      sections: Section[];
      /** the tool itself, or those of the plugin */
      tools: Tool[];
      /** the reason in a sentence, for people */
      why: string;
    };
  };
  /** Finds the kept manifests whose prompt holds a sentence, or that have all the terms, as "grapnel manifest find" does. Right: read. */
  "manifest/find": {
    params: {
      actor?: string;
      /** finds texts with all words of the sentence, in any order and case */
      any_order?: boolean;
      /** the newest so many: 50 if absent, 1000 at most */
      limit?: number;
      /** a piece of a kept text: blanks and line ends count as one blank, and case counts */
      sentence?: string;
      /** only manifests from this time on */
      since?: string;
      /** what a manifest must have, all of them: the kinds are the flags of "grapnel manifest find" */
      terms?: {
        kind: string;
        value: string;
      }[];
      /** a whole section with its heading, or a whole prompt: it is found by its hash, kept or not */
      text?: string;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests from before this time */
      until?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      first?: null | First;
      incomplete?: boolean;
      last?: null | First;
      records: First[];
      texts: {
        fingerprint: string;
        hash: string;
        manifest_id: string;
        owners: string[];
        section_id: string;
        texts: number;
      }[];
      threads: number;
      total: number;
    };
  };
  /** Reads a kept manifest. Right: read. */
  "manifest/get": {
    params: GetParams;
    result: {
      actor?: string;
      agent_id?: string;
      audits?: {
        contribution_hash: string;
        details?: Json;
        details_bytes: number;
        details_hash?: string;
        event_kind: string;
        phase: string;
        plugin: string;
        plugin_version: string;
        subscription_id: string;
      }[];
      blocked?: boolean;
      budgets: {
        phases: {
          granted_chars: number;
          granted_ms: number;
          phase: string;
          used_chars: number;
          used_ms: number;
        }[];
        turn: {
          granted_chars: number;
          granted_ms: number;
          used_chars: number;
          used_ms: number;
        };
      };
      build?: string;
      cache: {
        actual: null | number;
        because?: string;
        broke_at: string;
        cause?: string;
        field?: string;
        model?: string;
        of_agent?: boolean;
        owner: string;
        plan: Plan;
        predicted: null | number;
        provider?: string;
        rules?: null | {
          explicit?: boolean;
          lifetime_s?: number;
          minimum_tokens: number;
          step?: number;
        };
        tokens_lost: number;
        tool?: string;
        tool_tokens?: number;
      };
      calls?: Call[];
      compiler_version: string;
      config_hash?: string;
      content_hash: string;
      created_at: string;
      diagnostics: Diagnostic[];
      epoch?: number;
      erasure?: null | {
        actor?: string;
        at: string;
        before?: string;
        by: string;
        reason: string;
        records: number;
        texts: number;
        thread_id?: string;
        workspace_id?: string;
      };
      files: {
        chars: number;
        path: string;
        status: string;
      }[];
      fingerprint_dynamic: string;
      fingerprint_dynamic_without_extra_system: string;
      fingerprint_full: string;
      fingerprint_key_id?: string;
      fingerprint_stable: string;
      fingerprint_tools: string;
      generation: number;
      hash: string;
      hash_dynamic: string;
      hash_dynamic_without_extra_system: string;
      hash_full: string;
      hash_stable: string;
      hash_tools: string;
      history?: null | HistoryFrom;
      hook_sources: Source[];
      host_events?: {
        call_id?: string;
        event: string;
        facts: {
          name: string;
          value: string;
        }[];
        refused?: string;
      }[];
      host_tools?: {
        chars?: number;
        hash: string;
        name: string;
        owner?: string;
      }[];
      kind: string;
      manifest_id: string;
      mode?: string;
      observed?: string;
      omitted: Omitted[];
      plugins: Plugin[];
      policies: Policy[];
      prev: string;
      profile: "full" | "minimal" | "none";
      reminders?: Reminder[];
      requests?: {
        changes?: Change[];
        manifest_id: string;
        omitted?: number;
      }[];
      round: number;
      runs: Run[];
      runs_before?: number;
      schema_version: number;
      section_ids: string[];
      sections: Section[];
      seq: number;
      session_id: string;
      task_id?: string;
      texts_kept?: boolean;
      thread_id: string;
      tools: Tool[];
      turn_ended?: boolean;
      turn_id: string;
      /** what the provider reported of this prompt; absent where nothing was */
      usage?: null | {
        cache_read_tokens?: number;
        cache_write_tokens?: number;
        input_tokens?: number;
        manifest_id: string;
        output_tokens?: number;
        reported_at: string;
        rounds: number;
      };
      workspace_id: string;
    };
  };
  /** Lists the newest kept manifests, newest last, as "grapnel manifest list" does. Right: read. */
  "manifest/list": {
    params: {
      actor?: string;
      /** the newest so many: 50 if absent, 1000 at most */
      limit?: number;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      /** the newest manifests, newest last */
      manifests: First[];
      /** how many older ones there are */
      older: number;
    };
  };
  /** Lists kept manifests page by page, newest first, each with tokens, cache, failures, cuts and diagnostics. Right: read. */
  "manifest/overview": {
    params: {
      actor?: string;
      /** the whole id of a manifest: only older ones than it */
      before?: string;
      /** so many: 50 if absent, 1000 at most */
      limit?: number;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      /** whether there are older ones: ask for those before the last row */
      more: boolean;
      /** the newest first */
      rows: Row[];
    };
  };
  /** Adds up tokens, cuts, failures and cache hits, as "grapnel manifest stats" does. Right: read. */
  "manifest/stats": {
    params: {
      actor?: string;
      /** only manifests from this time on */
      since?: string;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests from before this time */
      until?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      blocked: number;
      days: {
        breaks: number;
        cache_read_tokens: number;
        cuts: number;
        day: string;
        failed: number;
        input_tokens: number;
        output_tokens: number;
        predicted: number;
        prompts: number;
        reported: number;
        tokens: number;
        tool_tokens: number;
      }[];
      first?: string;
      last?: string;
      owners: {
        breaks: number;
        chars: number;
        cuts: number;
        denied: number;
        failed: number;
        omitted: number;
        owner: string;
        runs: number;
        tokens: number;
        tokens_lost: number;
      }[];
      prompts: number;
      records: number;
      sections: {
        breaks: number;
        chars: number;
        cuts: number;
        omitted: number;
        prompts: number;
        section_id: string;
        tokens: number;
      }[];
      tool_tokens: number;
    };
  };
  /** Reads the texts of a kept prompt, section by section, as far as they were kept. Right: read. */
  "manifest/text": {
    params: GetParams;
    result: {
      /** whether each text is there and has the hash of its section */
      checked: boolean;
      manifest_id: string;
      /** in the order of the prompt */
      sections: ({
        id: string;
        /** without a heading; null if it was not kept, or is gone */
        text: null | string;
      })[];
      /** why not, for people; empty if it is */
      why: string;
    };
  };
  /** Lists the threads that have manifests. Right: read. */
  "manifest/threads": {
    params: {
      actor?: string;
      /** the next of an earlier call */
      after?: number;
      /** so many: 50 if absent, 1000 at most */
      limit?: number;
      /** only threads of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      /** after for the next page; 0 at the end */
      next: number;
      /** the latest begun first */
      threads: ({
        manifests: number;
        newest_at: string;
        thread_id: string;
        title: null | string;
        workspace_id: string;
      })[];
    };
  };
  /** Stops that. Without a workspace all watches of this connection for manifests end. Right: read. */
  "manifest/unwatch": {
    params: UnwatchParams;
    result: Record<string, never>;
  };
  /** Checks that the log is whole, as "grapnel manifest verify" does. A broken log is a result that says so. Right: read. */
  "manifest/verify": {
    params: {
      actor?: string;
      /** with a key: take threads whose last manifest is from before there was one */
      allow_unkeyed?: boolean;
      /** the hash of a manifest that must be there, as kept from an earlier verify */
      head?: string;
      /** a text that some manifest must have the hash of */
      text?: string;
      /** only manifests of this thread */
      thread_id?: string;
      /** only manifests of this workspace; a token that is bound to workspaces names one */
      workspace_id?: string;
    };
    result: {
      anchored: boolean;
      checked: number;
      first_bad: null | {
        manifest_id: string;
        reason: "altered" | "missing" | "reordered" | "inserted" | "fingerprint" | "schema" | "text" | "tree" | "database";
        seq: number;
      };
      ok: boolean;
      problems: ({
        detail: string;
        manifest_id: string;
        reason: "altered" | "missing" | "reordered" | "inserted" | "fingerprint" | "schema" | "text" | "tree" | "database";
        seq: number;
        thread_id: string;
        workspace_id: string;
      })[];
    };
  };
  /** Sends manifest/kept for new manifests over this connection, also for those of other gateways on the database: watch first, then read the overview. A manifest may come twice. Right: read. */
  "manifest/watch": {
    params: UnwatchParams;
    result: Record<string, never>;
  };
  /** Makes one call of a plugin's tool, as tool/call does, in a turn of its own, which is judged before and ends with the call. Right: dispatch. */
  "mcp/call": {
    params: {
      actor?: string;
      arguments?: Json;
      /** the working directory, which must lie below one of the gateway's roots */
      dir?: string;
      /** mcp if absent */
      thread_id?: string;
      tool: string;
      /** local if absent, which is made if it is missing */
      workspace_id?: string;
    };
    result: null | CallResult;
  };
  /** Lists the tools of plugins for a client that has no turns, such as one of the Model Context Protocol: a turn begins, is judged (turn.pre_policy), has its tools brought, and ends. It is recorded only if something was not allowed, was rewritten, failed or was audited. Right: dispatch. */
  "mcp/tools": {
    params: {
      actor?: string;
      /** the working directory, which must lie below one of the gateway's roots */
      dir?: string;
      /** mcp if absent */
      thread_id?: string;
      /** local if absent, which is made if it is missing */
      workspace_id?: string;
    };
    result: null | {
      /** by name, those of hidden domains too: a client of this kind has its own ways to keep them from a prompt */
      tools: ToolsResultTool[];
    };
  };
  /** Removes memories for good, as "grapnel memory forget" does. Right: write. */
  "memory/forget": {
    params: {
      actor?: string;
      /** 1000 at most */
      ids: string[];
      workspace_id: string;
    };
    result: {
      /** the ids of those that there were */
      forgotten: string[];
    };
  };
  /** Lists what is remembered of a workspace, the latest first, as "grapnel memory list" does. Right: read. */
  "memory/list": {
    params: {
      actor?: string;
      /** only items of this category */
      category?: string;
      /** the next of an earlier call */
      cursor?: string;
      /** so many: 50 if absent, 1000 at most */
      limit?: number;
      /** only items of this scope */
      scope?: string;
      workspace_id: string;
    };
    result: ListResult;
  };
  /** Finds what fits a query best, as "grapnel memory search" does. Right: read. */
  "memory/search": {
    params: {
      actor?: string;
      /** so many: 10 if absent, 20 at most */
      limit?: number;
      query: string;
      workspace_id: string;
    };
    result: ListResult;
  };
  /** Runs one phase without a turn: there are no policies, contexts or hidden tools, and a phase with a hook that needs a turn is refused (turn_needed). One that failed closed is a result with an error in it. Right: dispatch. */
  "phase/dispatch": {
    params: {
      actor?: string;
      /** where and when. A dir must lie below one of the gateway's roots */
      context?: Context;
      /** the input of the phase, as its schema has it */
      input?: Json;
      phase: string;
      /** also return what each hook was sent and answered; it needs the right admin */
      record?: boolean;
    };
    result: null | {
      background?: Background[];
      budget: Budget;
      contributions: Contribution[];
      decision: null | Decision;
      decision_ref?: null | DecisionRef;
      diagnostics: CallResultDiagnostic[];
      error: null | CallResultError;
      /** what each hook was sent and answered; absent unless record asks for it */
      exchanges?: ({
        /** the result before it is checked, merged or cut; null if there is none */
        answer: Json;
        /** why there is no answer; null if there is one */
        error: null | CallResultError;
        kind: string;
        plugin: string;
        plugin_version: string;
        /** the dispatch, without what was withheld */
        sent: Json;
        subscription: string;
        took_ms: number;
      })[];
      /** how many of them would have been too long to be here */
      exchanges_omitted?: number;
      merged: Merged;
      phase: string;
      plugins: Plugin[];
      runs: Run[];
      shadowed?: Contribution[];
    };
  };
  /** Returns the phases with the JSON Schemas of their inputs. Right: dispatch. */
  "phase/schemas": {
    params: {
      actor?: string;
    };
    result: {
      /** in the order of a turn */
      phases: ({
        /** when it is dispatched */
        description: string;
        /** a JSON Schema */
        input: Json;
        /** the kinds of contributions that it takes */
        kinds: ("policy" | "prompt_context" | "prompt_section" | "tool_bundle" | "decision" | "rewrite" | "reminder" | "manifest_diagnostic" | "audit" | "background_job" | "noop")[];
        phase: string;
      })[];
    };
  };
  /** Starts a plugin at once that is in quarantine or waits for its next start, forgets its failures, and closes its breakers. It waits for the start; one that failed again is a result that says so. Right: admin. */
  "plugin/release": {
    params: {
      actor?: string;
      /** the plugin's name in the configuration */
      plugin: string;
    };
    result: null | {
      /** subscriptions whose breakers were closed */
      breakers: string[];
      code: string;
      detail: string;
      from: "declared" | "starting" | "ready" | "degraded" | "backoff" | "quarantined" | "draining" | "stopped";
      plugin: string;
      state: "declared" | "starting" | "ready" | "degraded" | "backoff" | "quarantined" | "draining" | "stopped";
    };
  };
  /** Ends a session: runs session.end, whose hooks go on in the background, and forgets what was kept for its turns. Turns of it that are open go on. Right: dispatch. */
  "session/end": {
    params: {
      actor?: string;
      /** as of session/start */
      context: Context;
      /** why, in the host's words */
      reason?: string;
      /** answer only when the background work of this gateway is done */
      wait?: boolean;
    };
    result: null | EndResult;
  };
  /** Takes a session up again, also one of another gateway or from before a restart: runs session.resume, and keeps what it brings as session/start does. Right: dispatch. */
  "session/resume": {
    params: {
      actor?: string;
      /** as of session/start */
      context: Context;
      /** what the host recorded of the session, any JSON */
      state?: Json;
    };
    result: null | EndResult;
  };
  /** Begins a session: runs session.start, and keeps the contexts that it brings for the session's turns at this gateway. Its reminders come with the session's first prompt: do not deliver those of the answer, too. Right: dispatch. */
  "session/start": {
    params: {
      actor?: string;
      /** where and when; workspace_id and session_id are needed. Turns of the session carry both */
      context: Context;
      /** startup (also if absent), or clear */
      source?: string;
    };
    result: null | EndResult;
  };
  /** Returns the state of the gateway: its plugins and hooks, issues and their hints, stats and connections. Right: admin. */
  "status": {
    params: {
      actor?: string;
    };
    result: {
      /** by agent, what is installed that can outvote, hide or change what Grapnel's hooks say */
      above: { [name: string]: {
        /** it has the last word: nothing of Grapnel's stands above it */
        before: boolean;
        /** what it can do, in plain words; empty for nothing */
        can: string[];
        /** those of the agent's events that it takes and that bear on Grapnel's hooks */
        events: string[];
        id: string;
        /** mod, plugin, extension, managed hooks, setting, or Grapnel's mod */
        kind: string;
        /** its directory or file */
        path: string;
      }[] };
      config: string;
      connections: number;
      hooks: ({
        abandoned: number;
        abandoned_total: number;
        breaker: string;
        budget?: {
          chars?: number;
          tokens?: number;
        };
        cached: number;
        fail_open: number;
        failed: number;
        failed_in_a_row: number;
        failures: { [name: string]: number };
        hook: string;
        last_error: null | LastError;
        off: string;
        phase: string;
        plugin: string;
        role: "transform" | "contribute" | "validate" | "observe" | "tool" | "host";
        runs: number;
        states: { [name: string]: number };
        subscription: string;
        timeout_ms: number;
        took: Took;
      })[];
      issues: {
        at: string;
        code: string;
        fail_open: number;
        failed_in_a_row: number;
        hint: string;
        kind: string;
        phase: string;
        plugin: string;
        reason: string;
        subscription: string;
      }[];
      kept_turns: {
        /** how many have been ended for that */
        ended_idle: number;
        /** without a call for so long a turn is ended */
        idle_seconds: number;
        limit: number;
        open: number;
      };
      phases: {
        cancelled: number;
        dispatches: number;
        failed: number;
        phase: string;
        took: Took;
      }[];
      plugins: ({
        abandoned: number;
        abandoned_total: number;
        absent_paths?: string[];
        answers_dropped: number;
        code: string;
        concurrency: number;
        detail: string;
        generation: number;
        grant_hash?: string;
        grants: Grants;
        jobs: { [name: string]: number };
        last_error: null | LastError;
        log_lines_dropped: number;
        memory_bytes: number;
        next_start?: string;
        pinned?: boolean;
        plugin: string;
        queued: Took;
        recycled?: number;
        replies: {
          bytes: number;
          count: number;
        };
        requested: null | Grants;
        restarts: number;
        sha256: string;
        since: string;
        started_at?: string;
        state: "declared" | "starting" | "ready" | "degraded" | "backoff" | "quarantined" | "draining" | "stopped";
        tier: string;
        tier_lacks?: string[];
        took: Took;
        truncations: { [name: string]: number };
        version: string;
        waiting: number;
        working: number;
      })[];
      queue: {
        dead: number;
        durable: boolean;
        error?: string;
        oldest_seconds: number;
        running: number;
        scheduled: number;
        waiting: number;
      };
      /** the last attempt to read the configuration again; null if there was none */
      reload: null | ReloadResult;
      reloads: number;
      reloads_refused: number;
      seq: null | number;
      started_at: string;
      stats: {
        manifests_kept: number;
        manifests_kept_late: number;
        manifests_not_kept: number;
        model_hanging: number;
        sink_hanging: number;
        usage_kept: number;
        usage_not_kept: number;
      };
      store: string;
      uptime_seconds: number;
      version: string;
      /** how often a connection watches a workspace */
      watchers: number;
    };
  };
  /** Archives the document of a scope, and returns what is in effect then. Right: write. */
  "thread/agents_doc/archive": {
    params: {
      actor?: string;
      expected_doc_id?: string;
      expected_version?: null | number;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      workspace_id: string;
    };
    result: {
      archived: boolean;
      doc: null | Doc;
      effective: null | Effective;
    };
  };
  /** Lists archived documents: those of a scope, or, with all, of every scope. Right: read. */
  "thread/agents_doc/archived": {
    params: {
      actor?: string;
      all?: boolean;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      include_content?: boolean;
      limit?: number;
      workspace_id: string;
    };
    result: {
      /** the one that was archived last first */
      archived: ({
        archived_at: string;
        archived_by: string;
        chars: number;
        content: null | string;
        content_sha256: string;
        /** a folder's id; null is the root */
        folder_id: null | string;
        id: string;
        status: "draft" | "active" | "archived";
        updated_at: string;
        version: number;
      })[];
    };
  };
  /** Reads the document of a scope (a folder, or null for the root), drafts included, and the one in effect there. Right: read. */
  "thread/agents_doc/get": {
    params: {
      actor?: string;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      workspace_id: string;
    };
    result: {
      effective: null | Effective;
      explicit: null | Doc;
      /** how many characters of a document a prompt takes; 0 if that is not known */
      prompt_chars: number;
    };
  };
  /** Finds the document in effect for a thread. Right: read. */
  "thread/agents_doc/resolve_for_thread": {
    params: ThreadParams;
    result: {
      effective: null | Effective;
    };
  };
  /** Makes the text of an earlier version the document's newest one. An archived document is active again. Right: write. */
  "thread/agents_doc/restore": {
    params: {
      actor?: string;
      doc_id?: string;
      expected_version?: null | number;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      version: number;
      workspace_id: string;
    };
    result: {
      doc: Doc;
    };
  };
  /** Lists versions of a document, newest first. Right: read. */
  "thread/agents_doc/revisions": {
    params: {
      actor?: string;
      before_version?: number;
      doc_id?: string;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      include_content?: boolean;
      limit?: number;
      workspace_id: string;
    };
    result: {
      /** newest first */
      revisions: ({
        chars: number;
        content: null | string;
        content_sha256: string;
        doc_id: string;
        save_reason: "autosave" | "manual" | "archive" | "restore";
        saved_at: string;
        saved_by: string;
        version: number;
      })[];
    };
  };
  /** Saves the document of a scope. expected_version is the version that the text is based on; 0 or absent for a new document. A version_conflict says what there is instead. Right: write. */
  "thread/agents_doc/save": {
    params: {
      actor?: string;
      content: string;
      expected_doc_id?: string;
      expected_version?: null | number;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      save_reason?: "autosave" | "manual" | "archive" | "restore";
      workspace_id: string;
    };
    result: {
      doc: Doc;
      unchanged: boolean;
      warnings: {
        code: string;
        message: string;
      }[];
    };
  };
  /** Appends entries of a kept turn to its thread's conversation, where serve.conversations keeps one. An entry whose id is there already is not appended again; with another content it is an error, and nothing is appended. Right: dispatch. */
  "thread/append": {
    params: {
      actor?: string;
      /** entries of the turn, in order, each with an id that is unique in the thread */
      entries: Entry[];
      /** the turn, as turn/begin gave it */
      handle: string;
    };
    result: null | {
      /** the numbers of the entries in the thread, in order */
      seqs: number[];
    };
  };
  /** Creates a thread. Creating it again, with an id of the caller's, returns the existing one. Right: write. */
  "thread/create": {
    params: {
      actor?: string;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      id?: string;
      title: string;
      workspace_id: string;
    };
    result: {
      thread: Thread;
    };
  };
  /** Takes a thread out of the tree, with its conversation. Right: write. */
  "thread/delete": {
    params: ThreadParams;
    result: {
      thread: Thread;
    };
  };
  /** Reads a thread's conversation, the newest entries first, page by page. Right: dispatch. */
  "thread/entries": {
    params: {
      actor?: string;
      /** only entries below this number; for the page before */
      before_seq?: number;
      /** at most so many, 100 if absent */
      limit?: number;
      thread_id: string;
      workspace_id: string;
    };
    result: null | {
      /** in the order of the thread */
      entries: {
        at: string;
        entry: Entry;
        seq: number;
        /** how its turn ended; empty if it has not, or was lost with its gateway */
        turn_status: string;
      }[];
      /** whether there are older ones */
      more: boolean;
      /** stands for the entries up to through_seq in later prompts; empty for none */
      summary: string;
      /** -1 without a summary */
      through_seq: number;
    };
  };
  /** Moves a thread to another folder; null is the root. Right: write. */
  "thread/move": {
    params: {
      actor?: string;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      thread_id: string;
      workspace_id: string;
    };
    result: {
      thread: Thread;
    };
  };
  /** Renames a thread. Right: write. */
  "thread/rename": {
    params: {
      actor?: string;
      thread_id: string;
      title: string;
      workspace_id: string;
    };
    result: {
      thread: Thread;
    };
  };
  /** Keeps a summary of a thread's conversation up to an entry: later prompts have it in place of those. Runs turn.pre_compaction before, and turn.post_compaction afterwards. The entries stay. Right: dispatch. */
  "thread/summarize": {
    params: {
      actor?: string;
      /** a turn of the thread, in which the phases then run. Without one give workspace_id and thread_id */
      handle?: string;
      /** the summary, as the client's model wrote it */
      text: string;
      thread_id?: string;
      /** the id of the last entry that the summary stands for */
      through: string;
      /** why, in the client's words, for turn.pre_compaction */
      trigger?: string;
      workspace_id?: string;
    };
    result: null | {
      /** null if turn.pre_compaction failed closed: the summary was not kept then */
      post_compaction: null | EndResult;
      pre_compaction: null | EndResult;
      /** the number of the last entry that the summary stands for; -1 if it was not kept */
      through_seq: number;
    };
  };
  /** Reads the tree, or what is below a folder: folders, threads and summaries of documents, drafts included, never their text. Right: read. */
  "thread/tree": {
    params: {
      actor?: string;
      cursor?: string;
      depth?: number;
      /** a folder's id; null is the root */
      folder_id?: null | string;
      threads?: "all" | "none";
      workspace_id: string;
    };
    result: {
      agents_docs: AgentsDoc[];
      folders: Folder[];
      next_cursor: null | string;
      threads: Thread[];
    };
  };
  /** Makes a call of a plugin's tool, or of request_tools, which loads hidden ones: the hooks of tool.pre_call judge and rewrite it, those of tool.post_call its result. A call that was refused, or failed, is a result that says so. Right: dispatch. */
  "tool/call": {
    params: CallParams;
    result: null | CallResult;
  };
  /** Has a call of the client's own tool judged and rewritten (tool.pre_call), before the client makes it. A refused call is a result that says so. Right: dispatch. */
  "tool/check": {
    params: CallParams;
    result: null | {
      /** the arguments to call the tool with: a hook may have rewritten them; null if there are none */
      arguments: Json;
      /** the record of the prompt in force when hooks decided about the call; absent if none did, or no prompt is known */
      decision_ref?: null | DecisionRef;
      /** files and directories that the call is about now */
      paths: string[];
      /** why the call must not be made; absent if it may */
      refused?: null | Refused;
    };
  };
  /** Has the result of a checked call seen, rewritten (tool.post_call) and trimmed, and returns what the model gets. A call that was refused is not finished. Right: dispatch. */
  "tool/finish": {
    params: {
      actor?: string;
      /** the arguments as the model wrote them: a JSON object */
      arguments?: Json;
      /** the id that the model gave the call: reminders name it, and the same call of a plugin's tool again does nothing twice */
      call_id?: string;
      /** how long the call took, for the end of the turn */
      duration_ms?: number;
      /** the turn, as turn/begin gave it */
      handle: string;
      /** whether the tool failed */
      is_error?: boolean;
      /** files and directories that the call is about */
      paths?: string[];
      /** what the tool gave */
      text: string;
      /** the tool's name */
      tool: string;
    };
    result: null | {
      /** whether text is not what the tool gave */
      changed: boolean;
      /** whether the result tells the model of a failure */
      is_error: boolean;
      /** the result for the model: hooks may have rewritten it, and it is trimmed to the turn's max_result_chars */
      text: string;
    };
  };
  /** Begins a turn and keeps it, until turn/end, or as long as calls come: what its phases bring (policies, contexts, tools, reminders) holds for the next ones. No plugin is called yet: the first turn/compile has the message judged. Right: dispatch. */
  "turn/begin": {
    params: {
      actor?: string;
      /** trims the results of the turn's tools to so many characters, with a reminder of what was cut; 0 does not */
      max_result_chars?: number;
      /** where and when; workspace_id, thread_id and turn_id are needed. A dir must lie below one of the gateway's roots */
      turn: Context;
    };
    result: {
      /** names the turn in further calls to this gateway, by the same token */
      handle: string;
      /** without a call for so long the turn is ended as interrupted */
      idle_seconds: number;
      /** whether this gateway knows how the turn's session began; if not, call session/resume before the turn's first turn/compile, which then has what it brings */
      in_session: boolean;
    };
  };
  /** Compiles the prompt of a turn and records its manifest: in a kept turn (handle) that of the next round, after the phases ahead that the turn has not passed yet, with the reminders of all phases since the last prompt, each once; else (turn) as "grapnel compile" does. A turn that was denied, or whose phase failed closed, is a result with an error in it. Right: compile. */
  "turn/compile": {
    params: {
      actor?: string;
      /** the turn to compile in, as turn/begin gave it */
      handle?: string;
      /** what the host brings */
      input?: {
        /** names of the host's own tools */
        existing_tools?: string[];
        /** what the host sends behind the prompt, for the record */
        history?: null | HistoryFrom;
        /** definitions of the host's own tools, for the record; their names are existing tools, too */
        host_tools?: ToolsResultTool[];
        model?: string;
        provider?: string;
        /** what the host's planner wants recalled; without it that phase is not run */
        recall_plan?: Json;
        /** texts for the compiler's own sections */
        texts?: {
          dynamic_context?: string;
          identity?: string;
          identity_core?: string;
          recovery_continuation?: string;
          retry_instruction?: string;
          safety?: string;
          soul_core?: string;
          task_orchestration?: string;
          task_tools?: boolean;
          tool_recovery?: boolean;
          tool_recovery_policy?: string;
          user_persona?: string;
        };
        /** whether the provider can call tools */
        tool_calling?: boolean;
        /** the user's message; --message goes before it */
        user_text?: string;
      };
      /** instead of a handle: a turn that ends with its prompt, as turn/begin takes it */
      turn?: null | Context;
    };
    result: null | {
      /** what of the thread's conversation to send after the prompt, and then the reminders; absent where the gateway keeps none, or there is no prompt. The entries of this turn so far are at its end */
      conversation?: null | {
        basis_points: number;
        budget: number;
        compaction: "none" | "start" | "now";
        dropped: {
          call_id?: string;
          entry_id?: string;
          index: number;
          reason: string;
          tokens?: number;
          turn_id?: string;
        }[];
        entries: Entry[];
        fixed: number;
        scale: {
          factor: number;
          safety: number;
          unseen: number;
        };
        summary?: string;
        total: number;
        used: number;
      };
      diagnostics: CallResultDiagnostic[];
      error?: null | CallResultError;
      /** The record of what went into one prompt, from whom, and what was cut or omitted. Metadata only. */
      manifest: null | {
        /** actor is who the turn was made for, as the host says: KIND:ID, such as user:ada; absent without one. */
        actor?: string;
        /** agent_id is the host's id of the agent; absent without one. */
        agent_id?: string;
        /** audits are the events that plugins brought for the audit trail since the turn's previous record; absent without any. */
        audits?: {
          /** contribution_hash is the hash of the contribution. */
          contribution_hash: string;
          /** details is any JSON; absent where the plugin did not call it safe for users, or where it is too long. */
          details?: Json;
          /** details_bytes is the length of the details as canonical JSON. */
          details_bytes: number;
          /** details_hash is that of the details as canonical JSON; absent without details, and where they are here. */
          details_hash?: string;
          /** event_kind is the plugin's word for what happened. */
          event_kind: string;
          /** phase is the phase that it came from. */
          phase: string;
          /** plugin is the plugin. */
          plugin: string;
          /** plugin_version is the plugin's version. */
          plugin_version: string;
          /** subscription_id is the full id of the subscription. */
          subscription_id: string;
        }[];
        /** blocked says that the turn was blocked: no provider has seen a prompt of this record. */
        blocked?: boolean;
        /** budgets are time and text, granted and used. */
        budgets: {
          /** phases has one entry per dispatch, in order. */
          phases: {
            /** granted_chars is the text allowed, in Unicode scalar values. */
            granted_chars: number;
            /** granted_ms is the time that the configuration allows, in milliseconds: what was left of the turn does not make it smaller. */
            granted_ms: number;
            /** phase is the phase that was dispatched. */
            phase: string;
            /** used_chars is what is in the prompt, in Unicode scalar values: of a turn the sections of plugins, of a phase what the spans of its last dispatch have, with the markers behind them. */
            used_chars: number;
            /** used_ms is the wall time used, in milliseconds. */
            used_ms: number;
          }[];
          /** turn is the turn's own budget. */
          turn: {
            /** granted_chars is the text allowed, in Unicode scalar values. */
            granted_chars: number;
            /** granted_ms is the time that the configuration allows, in milliseconds: what was left of the turn does not make it smaller. */
            granted_ms: number;
            /** used_chars is what is in the prompt, in Unicode scalar values: of a turn the sections of plugins, of a phase what the spans of its last dispatch have, with the markers behind them. */
            used_chars: number;
            /** used_ms is the wall time used, in milliseconds. */
            used_ms: number;
          };
        };
        /** build is the version of Grapnel that made the record. */
        build?: string;
        /** cache is what is known about the provider's prompt cache. */
        cache: {
          /** actual is how many input tokens did come from the cache, as the provider reported; null until it has. It is filled in where a record is shown and is null in what is stored and hashed. */
          actual: null | number;
          /** because is what changed at the same time and explains it: plugin_version, configuration, build or profile. */
          because?: "provider" | "model" | "tools" | "host_tools" | "expired" | "section_text" | "section_order" | "section_inserted" | "section_removed" | "section_moved" | "key" | "breakpoint" | "epoch" | "history_edited" | "history_cut" | "plugin_version" | "configuration" | "build" | "profile" | "unknown";
          /** broke_at is the section that changed; empty where it was something else. */
          broke_at: string;
          /** cause is the first change in the order of the request; absent if there is none. */
          cause?: "provider" | "model" | "tools" | "host_tools" | "expired" | "section_text" | "section_order" | "section_inserted" | "section_removed" | "section_moved" | "key" | "breakpoint" | "epoch" | "history_edited" | "history_cut" | "plugin_version" | "configuration" | "build" | "profile" | "unknown";
          /** field says what of the section or tool changed: text, order, added or removed contributions; stability or placement; definition, added, removed, hidden_domain or owner. Absent where the cause says it. */
          field?: string;
          /** model is the model that the prompt was compiled for; empty where that is not known. */
          model?: string;
          /** of_agent says that an agent behind hooks compiles the request, of which this prompt is a part. What the provider holds of it is not known here: there is no plan, no prediction and no break. */
          of_agent?: boolean;
          /** owner is who made the change: a plugin, "builtin" or "host". */
          owner: string;
          /** plan is what the adapters are asked to do. */
          plan: {
            /** breakpoints are the ends of prefixes worth keeping, first to last. */
            breakpoints?: ({
              /** after says what the prefix ends with. */
              after: "tools" | "stable" | "dynamic";
              /** section_id is the last section in the prefix; empty after tools. */
              section_id?: string;
            })[];
            /** key groups requests that share the stable part. */
            key?: string;
          };
          /** predicted is how many tokens of tools and sections the provider should serve from its cache: an estimate that takes no account of the conversation behind them. Null without a previous manifest, a tokenizer, or known rules of the model. */
          predicted: null | number;
          /** provider is the provider that the prompt was compiled for; empty where that is not known. */
          provider?: string;
          /** rules are what was known of the model's cache; absent where nothing was. */
          rules?: null | {
            /** explicit says that prefixes end at breakpoints only. */
            explicit?: boolean;
            /** lifetime_s is how long an unused prefix is kept, in seconds; 0 if unknown. */
            lifetime_s?: number;
            /** minimum_tokens is the shortest prefix that is cached. */
            minimum_tokens: number;
            /** step is by how many tokens a prefix grows that was found without breakpoints; 0 is any number. */
            step?: number;
          };
          /** tokens_lost is what the provider held of the previous prompt and had to read again: as both usages say, else an estimate from the sections; 0 without a tokenizer. */
          tokens_lost: number;
          /** tool is the tool that changed; absent where it was something else. */
          tool?: string;
          /** tool_tokens is about how many tokens the definitions of the offered tools have; absent without a tokenizer. */
          tool_tokens?: number;
        };
        /** calls are the decided or rewritten dispatches and the steps of tool calls since the turn's previous record, in order; absent without any. */
        calls?: ({
          /** call_id is the host's id of the tool call; absent from other dispatches. */
          call_id?: string;
          /** came is the hash of the input as the host gave it, as canonical JSON. */
          came: string;
          /** code is why the call was refused or failed: forbidden, tool_error, or the code that the host reported; absent on success. */
          code?: string;
          /** decided_by are the subscriptions behind the verdict, in order; absent without one. */
          decided_by?: {
            /** contribution_id is the plugin's own id of the decision, such as the file, line and name of a rule; absent without one. */
            contribution_id?: string;
            /** reason_code is the plugin's own word for the reason; absent without one. */
            reason_code?: string;
            /** shadow says that it decided nothing: it would have decided so. */
            shadow?: boolean;
            /** subscription is the full id of the hook. */
            subscription: string;
            /** verdict is what it decided. */
            verdict: string;
          }[];
          /** facts are words for what was known of the call as it went, sorted: hosts, outside, secrets, unparsed, writes; absent where none applies, and where no hook needed facts. */
          facts?: string[];
          /** facts_hash is the hash of the facts, as canonical JSON; absent where no hook needed them. */
          facts_hash?: string;
          /** input is what it takes to dispatch it again; absent where manifest.keep_inputs is off. */
          input?: null | {
            /** arguments is the hash of the arguments whose result it is; absent from others than results. */
            arguments?: string;
            /** at is when it was dispatched, in UTC. */
            at: string;
            /** chars is the length of a result in Unicode scalar values, of which plugins see the beginning; absent from others. */
            chars?: number;
            /** omitted is how many bytes of its texts are not kept, because the record had no room for them or the result was withheld; absent if none. */
            omitted?: number;
            /** place is the hash of its [Place] as canonical JSON. */
            place: string;
          };
          /** owner answers the tool: a plugin, "host" or "builtin"; absent from other dispatches, and where nobody has that tool. */
          owner?: string;
          /** phase is the phase that was dispatched. */
          phase: string;
          /** rewritten_by are the subscriptions whose rewrites were applied, in order; absent without any. */
          rewritten_by?: string[];
          /** state is the outcome of the call: succeeded, or how the call or its check failed; absent while there is none. */
          state?: "succeeded" | "denied" | "failed" | "timed_out" | "cancelled" | "filtered" | "disabled" | "unavailable" | "budget_exhausted" | "cached" | "shadowed" | "queued";
          /** tool is the name of the tool; absent from other dispatches. */
          tool?: string;
          /** verdict is the decision; absent where no hook decided. */
          verdict?: string;
          /** went is the hash of the input after all rewrites. */
          went: string;
        })[];
        /** compiler_version changes when the same input would give another prompt; empty in the record of an erasure. */
        compiler_version: string;
        /** config_hash is the hash of the configuration in force. */
        config_hash?: string;
        /** content_hash is the hash of the content without times, ids and durations: equal for equal work. */
        content_hash: string;
        /** created_at is when the record was made, in UTC. */
        created_at: string;
        /** diagnostics are the remarks of compiler, runtime and plugins. */
        diagnostics: ({
          /** cause is why the hook failed, in a mark that a failure left behind (fail_open); absent from others. */
          cause?: string;
          /** code is a stable word. */
          code: string;
          /** hook_source is the subscription concerned, if any. */
          hook_source: string;
          /** message is for people: the engine's own, or a plugin's where its author calls it safe and the hook's visibility is user_audit or user_visible. A neutral sentence stands for any other. */
          message: string;
          /** section_id is the section concerned, if any. */
          section_id: string;
          /** severity is how bad it is. */
          severity: "info" | "warning" | "error";
        })[];
        /** epoch counts the compactions, clears and reloads of the session, from 0: a prompt of a higher epoch than the one before it follows other history. Behind agents' hooks it counts from 0 again when the gateway is started. */
        epoch?: number;
        /** erasure says what was erased; absent from other records. */
        erasure?: null | {
          /** actor narrows it to a person; absent if it did not. */
          actor?: string;
          /** at is when, in UTC. */
          at: string;
          /** before narrows it to older records; absent if it did not. */
          before?: string;
          /** by is who asked for it. */
          by: string;
          /** reason is why. */
          reason: string;
          /** records is how many records named one of the texts. */
          records: number;
          /** texts is how many texts went. */
          texts: number;
          /** thread_id narrows it to a thread; absent if it did not. */
          thread_id?: string;
          /** workspace_id narrows it to a workspace; absent if it did not. */
          workspace_id?: string;
        };
        /** files are the runtime-home files that were read, or looked for, and those that the host gives the model by itself. */
        files: {
          /** chars is the length of what went into the prompt, in Unicode scalar values. */
          chars: number;
          /** path is relative to the persona directory; that of a file of the host is as the host names it. */
          path: string;
          /** status is loaded, missing, host for a file that the host gives the model by itself, or the diagnostic code that says why it was not read. */
          status: string;
        }[];
        /** fingerprint_dynamic is the fingerprint of the dynamic part. */
        fingerprint_dynamic: string;
        /** fingerprint_dynamic_without_extra_system is the fingerprint of the dynamic part without the section extra_system, which changes with the date. */
        fingerprint_dynamic_without_extra_system: string;
        /** fingerprint_full is the fingerprint of both parts with the boundary between them. */
        fingerprint_full: string;
        /** fingerprint_key_id differs from key to key; absent without one. */
        fingerprint_key_id?: string;
        /** fingerprint_stable is the fingerprint of the stable part. */
        fingerprint_stable: string;
        /** fingerprint_tools is the fingerprint of the tool list. */
        fingerprint_tools: string;
        /** generation is the loaded configuration that the turn ran under. */
        generation: number;
        /** hash is the hash of this record with this field empty. */
        hash: string;
        /** hash_dynamic is the hash of the dynamic part. */
        hash_dynamic: string;
        /** hash_dynamic_without_extra_system is the hash of the dynamic part without the section extra_system, which changes with the date. */
        hash_dynamic_without_extra_system: string;
        /** hash_full is the hash of both parts with the boundary between them. */
        hash_full: string;
        /** hash_stable is the hash of the stable part. */
        hash_stable: string;
        /** hash_tools is the hash of the tool list. */
        hash_tools: string;
        /** history is the conversation that the host sends behind the prompt; absent where it did not say. */
        history?: null | {
          /** added are the parts of an observed request's messages behind those, in order, without those that a changed message still begins with; absent without any. */
          added?: {
            /** chars is its length in Unicode scalar values. */
            chars: number;
            /** hash is the SHA-256 of its text. */
            hash: string;
            /** id is that of a call, or the agent's name for what it put there; absent without one. */
            id?: string;
            /** kind says what it is: the agent's word for a text that it put there, or else the provider's, such as tool_result. */
            kind: string;
            /** message is the message's place in the conversation, from 0. */
            message: number;
            /** owner is who wrote it, as for sections of an observed request. */
            owner: string;
            /** role is the message's role, in the provider's words. */
            role: string;
          }[];
          /** cached is how many messages an observed request asks the provider to keep. */
          cached?: number;
          /** cut is how many were left out; absent if none. */
          cut?: number;
          /** entries is how many messages are sent. */
          entries: number;
          /** hash is that of all of them in order. */
          hash: string;
          /** previous is the record of the thread's previous observed request, and Same how many messages this one begins with that it had; both absent where that is not known. */
          previous?: string;
          /** repaired is how many were changed so that the provider accepts them; absent if none. */
          repaired?: number;
          same?: number;
          /** summarized is how many a summary stands for; absent if none. */
          summarized?: number;
        };
        /** hook_sources has one entry per kept contribution of each hook that ran. */
        hook_sources: {
          /** The run that a cached answer came from; empty for a fresh one. */
          cached_from: string;
          /** The SHA-256 of the contribution as canonical JSON. */
          contribution_hash: string;
          /** The plugin's id of the contribution, or `SUBSCRIPTION#INDEX`. */
          contribution_id: string;
          /** The kind of the contribution. */
          contribution_kind: string;
          /** The plugin's own name of the hook. */
          hook_id: string;
          /** The phase that it came from. */
          phase: string;
          /** The plugin. */
          plugin: string;
          /** The plugin's own word for its version. */
          plugin_version: string;
          /** priority is the subscription's. */
          priority: number;
          /** The section that its text went to; empty for what is no text, and for a context that is not rendered. */
          section_id: string;
          /** How many `source_refs` it has. */
          source_count: number;
          /** The full id, `PLUGIN.HOOK`. */
          subscription_id: string;
          /** truncation is hook, prompt, hook_and_prompt or none. */
          truncation: string;
        }[];
        /** host_events are what a host said that it did by itself since the turn's previous record, in order; absent without any. */
        host_events?: {
          /** call_id is the host's id of the call that it is about; absent without one. */
          call_id?: string;
          /** event is the host's name of the event. */
          event: string;
          /** facts are what the host said of it, in its own words. */
          facts: {
            /** name is the host's own name for the value. */
            name: string;
            /** value is the host's text, or one that somebody else wrote, such as the name of a skill. */
            value: string;
          }[];
          /** refused is why the host was told not to do it; absent where it was only recorded. */
          refused?: string;
        }[];
        /** host_tools are the tools that the host offers beside them, by name; absent without any. */
        host_tools?: {
          /** chars is the length of its definition in Unicode scalar values; absent where that is not known. */
          chars?: number;
          /** hash is the SHA-256 of its definition; empty where the host gave only the name. */
          hash: string;
          /** name is the name that the model calls. */
          name: string;
          /** owner is who brought it, as for sections of an observed request; absent from others. */
          owner?: string;
        }[];
        /** kind says what the record is about: a prompt, what came after it, or an erasure. */
        kind: string;
        /** manifest_id is a ULID, made when the compilation began. */
        manifest_id: string;
        /** mode is the host's mode; absent without one. */
        mode?: string;
        /** observed is the agent behind hooks that made this request by itself: the record has its parts as they were sent, with those of Grapnel among them. Absent from prompts that Grapnel compiled. */
        observed?: string;
        /** omitted is what did not reach the prompt, and why. */
        omitted: {
          /** The length of the omitted text; 0 for what is not text. */
          chars: number;
          /** id is a section or contribution id. */
          id: string;
          /** The plugin that it came from, `builtin` or `host`. */
          owner: string;
          /** reason is a word: budget, profile, conflict, forbidden, blank, filtered, duplicate, host_cannot, or a Cause. */
          reason: string;
        }[];
        /** plugins has one row per declared plugin. */
        plugins: ({
          /** absent_paths lists granted paths that were not there when the process started, and are not granted therefore; absent if all were. */
          absent_paths?: string[];
          /** Why it is not ready: a cause, or `abandoned`. */
          code: string;
          /** More about that, in the words of the engine. */
          detail: string;
          /** The loaded configuration. */
          generation: number;
          /** grant_hash is the hash of what the operator grants the plugin. */
          grant_hash?: string;
          /** pinned says that the operator's file names the checksum. */
          pinned?: boolean;
          /** The operator's name of the plugin. */
          plugin: string;
          /** recycled is how often a new process took over from one that was well (limits.recycle). */
          recycled?: number;
          /** How often its process was started again. */
          restarts: number;
          /** sha256 is the checksum of the program in hex; "builtin" and "in_process" where there is no file, and "unpinned" where it could not be read. */
          sha256: string;
          /** The state of the plugin. */
          state: "declared" | "starting" | "ready" | "degraded" | "backoff" | "quarantined" | "draining" | "stopped";
          /** tier is the sandbox tier reached: "T0", "T1", "T2", or "" in process. */
          tier: string;
          /** tier_lacks says what the tier lacks on this machine; absent if that is nothing. */
          tier_lacks?: string[];
          /** The plugin's own word for its version; empty before it has described itself. */
          version: string;
        })[];
        /** policies are the policy entries in force, with their owners. */
        policies: {
          /** The domain of the policy. */
          domain: string;
          /** The key within the domain. */
          key: string;
          /** owner is the subscription that set it. */
          owner: string;
          /** The priority of the subscription that set it. */
          priority: number;
          /** Any JSON. */
          value: Json;
        }[];
        /** prev is the hash of the thread's previous record; empty for the first. */
        prev: string;
        /** profile is how much of the prompt was compiled. */
        profile: "full" | "minimal" | "none";
        /** reminders are those that were handed to the host since the turn's previous record, with the prompt as a rule; absent without any. */
        reminders?: {
          /** chars is the length of its text in Unicode scalar values. */
          chars: number;
          /** contribution_id is that of the contribution. */
          contribution_id: string;
          /** fingerprint is that of its text. */
          fingerprint: string;
          /** hash is the SHA-256 of its text. */
          hash: string;
          /** owner is the subscription that it is from. */
          owner: string;
          /** type says what kind of reminder it is. */
          type: string;
          /** with is the phase whose answer carried it; absent from one that came with the prompt. */
          with?: string;
        }[];
        /** requests are what the host reported of requests since the turn's previous record, in order; absent without any. */
        requests?: {
          /** changes are what the request had different from that record, in the order reported; absent without any. */
          changes?: {
            /** id is the section's, the tool's or the call's; absent without one. */
            id?: string;
            /** kind says what differs. */
            kind: string;
            /** manifest is what the record or the conversation has: a place, name, id or key; absent without one. */
            manifest?: string;
            /** sent is what was sent instead; absent if nothing was. */
            sent?: string;
          }[];
          /** manifest_id is the record of the prompt. */
          manifest_id: string;
          /** omitted is how many further changes were reported than are kept; absent if none. */
          omitted?: number;
        }[];
        /** round is the provider round within the turn, from 0. */
        round: number;
        /** runs is the ledger of every phase of the turn so far: one row per subscription expected, and one per call of a tool; in a record of events, those since the last prompt. */
        runs: ({
          /** How often it was tried; 0 where it did not run. */
          attempts: number;
          /** Bytes that went to the plugin, 0 in process; of a host call to the service. */
          bytes_in: number;
          /** Bytes that came back; 0 in process. */
          bytes_out: number;
          /** cached_from names the run that a cached answer came from. */
          cached_from: string;
          /** code is the cause; for a disabled run the reason, and "tool_error" for a tool that reported a failure to the model. Empty when all is well. */
          code: string;
          /** contributions are the hashes of what was kept. */
          contributions: string[];
          /** What was cut of its contributions. */
          cut: ({
            /** The contribution that was cut. */
            contribution_id: string;
            /** The length of what is left of it, without frames and markers. */
            kept: number;
            /** The one limit that cut the text. */
            limit: "plugin" | "contribution" | "subscription" | "section" | "total";
            /** The length of the text that came, without frames and markers. */
            original: number;
            /** The section that its text went to; absent for a context. */
            section_id?: string;
          })[];
          /** Wall milliseconds in the call. */
          duration_ms: number;
          /** The loaded configuration. */
          generation: number;
          /** The plugin's own name of the hook; of a tool call the tool, of a host call `model.complete`. */
          hook: string;
          /** Which start of the plugin answered, from 1; 0 where none was asked. */
          incarnation: number;
          /** layer is the dependency layer inside the stage, from 0. */
          layer: number;
          /** model names the model that answered a host call, as the host says; absent from other rows. */
          model?: string;
          /** The phase; tool.call for a call of a tool and host.call for one of a host service, which belong to none. */
          phase: string;
          /** The plugin. */
          plugin: string;
          /** plugin_code is the plugin's own word in a plugin_error. */
          plugin_code: string;
          /** The plugin's version; empty where the plugin was not asked. */
          plugin_version: string;
          /** Wall milliseconds of waiting for a slot. */
          queue_ms: number;
          /** reason_code is the plugin's own word for the reason of the verdict. */
          reason_code?: string;
          /** rewritten_by are the subscriptions whose rewrites were in the input that the condition judged and the hook was sent; absent where it was as the host gave it. */
          rewritten_by?: string[];
          /** The stage: the role of the subscription; tool for a call of a tool, host for one of a host service. */
          stage: "transform" | "contribute" | "validate" | "observe" | "tool" | "host";
          /** What became of the hook. `cached` counts as `succeeded`. */
          state: "succeeded" | "denied" | "failed" | "timed_out" | "cancelled" | "filtered" | "disabled" | "unavailable" | "budget_exhausted" | "cached" | "shadowed" | "queued";
          /** The full id; of a tool call `PLUGIN.TOOL`, or the tool alone where nobody has it; of a host call the caller's, with `/model.complete` behind it. */
          subscription: string;
          /** usage is what the model's provider reported for a host call; absent from other rows. */
          usage?: {
            /** cache_read_tokens came out of the provider's cache. */
            cache_read_tokens?: number;
            /** cache_write_tokens went into it. */
            cache_write_tokens?: number;
            /** input_tokens are all that were read, those of the cache included. */
            input_tokens?: number;
            /** output_tokens are all that were written, reasoning included. */
            output_tokens?: number;
          };
          /** verdict is what the hook decided, of several decisions the strongest; of a shadowed run what it would have decided. Absent where it decided nothing. */
          verdict?: string;
        })[];
        /** runs_before is how many of Runs, counted from the first, earlier records of the turn already have; absent if none. */
        runs_before?: number;
        /** schema_version is the version of this record's JSON. */
        schema_version: number;
        /** section_ids are the ids of the sections, in order, for quick reading. */
        section_ids: string[];
        /** sections are the sections of the prompt, in the order in which they reach the model: stable, dynamic, then system and user messages. */
        sections: ({
          /** chars is the length of the text in Unicode scalar values, without its heading. */
          chars: number;
          /** content_map says who wrote what of the text, in order and without a gap. */
          content_map: {
            /** contribution_id is that of the hook source; absent from texts of the host and the engine. */
            contribution_id?: string;
            /** length is how long it is, in Unicode scalar values. */
            length: number;
            /** offset is where it begins in the text without the heading, in Unicode scalar values. */
            offset: number;
            /** owner is a plugin's name, "builtin" or "host". */
            owner: string;
          }[];
          /** fingerprint is that of the rendered section, heading included: a short name of it, which others can forge. */
          fingerprint: string;
          /** hash is the SHA-256 of the rendered section, heading included. */
          hash: string;
          /** original_chars is the length before any cut. */
          original_chars: number;
          /** owner is a plugin's name, "builtin" or "host"; in an observed request also the agent, or whoever brought it there: "mod:NAME", "mcp:SERVER", "user", "model" or "unknown". */
          owner: string;
          /** placement says whether it is part of the system prompt or a message; where an agent compiles the request, its text stands where the agent puts it. */
          placement: "system" | "system_message" | "user_message";
          /** position is the place in the list, from 0. */
          position: number;
          /** section_id is the section's id, unique in the record. */
          section_id: string;
          /** source_refs say where the text came from. */
          source_refs: {
            /** hash says which content it was, such as "sha256:" and 64 hex digits of a file's bytes. */
            hash?: string;
            /** The id of the source. A document of the thread tree is `ID@VERSION`: that very revision. */
            id?: string;
            /** kind is one of SourceKinds. */
            kind: string;
            /** label is for people. */
            label?: string;
          }[];
          /** stability says in which part of the prompt it stands. */
          stability: "stable" | "dynamic";
          /** title is the heading. */
          title: string;
          /** tokenizer names what counted the tokens. */
          tokenizer?: string;
          /** tokens is the length of the rendered section; absent without a tokenizer. */
          tokens?: null | number;
          /** truncation says which limit cut the text; null if none did. */
          truncation: null | {
            /** The length of what is left of it, without frames and markers. */
            kept: number;
            /** The one limit that cut the text. */
            limit: "plugin" | "contribution" | "subscription" | "section" | "total";
            /** The length of the text that came, without frames and markers. */
            original: number;
          };
        })[];
        /** seq counts the records of one workspace and thread, from 0. The store assigns it; 0 without one. */
        seq: number;
        /** session_id is the host's id of the session; empty without one. */
        session_id: string;
        /** task_id is the host's id of the task; absent without one. */
        task_id?: string;
        /** texts_kept says that the texts of the sections were given to the store with the record. */
        texts_kept?: boolean;
        /** thread_id is the host's id of the thread. */
        thread_id: string;
        /** tools are the tools offered to the model, and those that it may request, by name, with their owners. */
        tools: {
          /** bundle_id is the bundle that brought it; empty for the host's own. */
          bundle_id: string;
          /** hash is the SHA-256 of its definition; empty where that is not known. */
          hash: string;
          /** hidden_domain is the domain that has to be requested before the tool is offered; empty for a tool that is. */
          hidden_domain?: string;
          /** name is the name that the model calls. */
          name: string;
          /** owner is the plugin that answers it, "host" or "builtin". */
          owner: string;
        }[];
        /** turn_ended says that the turn ended with this record; absent where more may follow. */
        turn_ended?: boolean;
        /** turn_id is the host's id of the turn. */
        turn_id: string;
        /** workspace_id is the host's id of the workspace. */
        workspace_id: string;
      };
      prompt: null | {
        boundary: string;
        cache_plan: Plan;
        dynamic_text: string;
        full_text: string;
        stable_text: string;
        system_messages: Message[];
        user_messages: Message[];
      };
      /** the reminders as a model reads them: each a message to be put after the conversation, in order. They stay in the conversation: no later prompt has them again */
      reminder_texts: string[];
      reminders: MergedReminder[];
      tools: ToolsResultTool[];
    };
  };
  /** Runs one phase in a kept turn. One that failed closed is a result with an error in it. Right: dispatch. */
  "turn/dispatch": {
    params: {
      actor?: string;
      /** the turn, as turn/begin gave it */
      handle: string;
      /** the input of the phase, as its schema has it */
      input?: Json;
      /** any but turn.post_turn and those of sessions, which have methods of their own */
      phase: string;
    };
    result: null | EndResult;
  };
  /** Ends a kept turn, when its calls have returned: the plugins are notified, and go on in the background. Right: dispatch. */
  "turn/end": {
    params: {
      actor?: string;
      /** how the turn ended, as the input of turn.post_turn. Without user_text, tool_events or usage it has what this gateway knows of them: the message of the first turn/compile, the calls that went through tool/call, tool/check and tool/finish, and the sum of what was reported */
      end: {
        assistant_text?: string | Text | AssistantText;
        domain_events?: {
          details?: Json;
          kind: string;
        }[];
        error?: string | Text | AssistantText;
        status?: "succeeded" | "failed" | "provider_failure" | "interrupted" | "blocked";
        tool_events?: {
          call_id?: string;
          duration_ms?: number;
          outcome?: string;
          tool: string;
        }[];
        usage?: Usage;
        user_text?: string | Text | AssistantText;
      };
      /** the turn, as turn/begin gave it */
      handle: string;
      /** answer only when the background work of this gateway is done */
      wait?: boolean;
    };
    result: null | EndResult;
  };
  /** Puts on record what became of the turn's last prompt: how the request differed from it, and what the provider reported. Call it once a round. Right: dispatch. */
  "turn/report": {
    params: {
      actor?: string;
      /** what the request had different from the prompt's record; absent if nothing */
      changes?: Change[];
      /** the turn, as turn/begin gave it */
      handle: string;
      /** what the provider reported for the request. Who knows only the sum gives it to turn/end instead */
      usage?: Usage;
    };
    result: Record<string, never>;
  };
  /** Says who calls, and what the caller may do. Right: none. */
  "whoami": {
    params: {
      actor?: string;
    };
    result: {
      /** whether the caller may work in every workspace */
      all_workspaces: boolean;
      /** the token's name; empty on a gateway without tokens */
      name: string;
      /** whether the gateway has no tokens: then everybody who reaches it may do everything */
      open: boolean;
      rights: string[];
      /** the gateway's */
      version: string;
      /** the workspaces that the caller is bound to; empty for all */
      workspaces: string[];
    };
  };
  /** Creates a workspace. Creating it again, with an id of the caller's, returns the existing one. A token that is bound to workspaces may only create those. Right: write. */
  "workspace/create": {
    params: {
      actor?: string;
      id?: string;
      name: string;
    };
    result: {
      workspace: Workspace;
    };
  };
  /** Deletes a workspace. One that is not empty needs recursive. Right: write. */
  "workspace/delete": {
    params: {
      actor?: string;
      recursive?: boolean;
      workspace_id: string;
    };
    result: {
      workspace: Workspace;
    };
  };
  /** Lists the workspaces that the caller may see. Right: read. */
  "workspace/list": {
    params: {
      actor?: string;
    };
    result: {
      workspaces: Workspace[];
    };
  };
  /** Renames a workspace. Right: write. */
  "workspace/rename": {
    params: {
      actor?: string;
      name: string;
      workspace_id: string;
    };
    result: {
      workspace: Workspace;
    };
  };
  /** Stops that. The seq is where watching can go on later. Right: read. */
  "workspace/unwatch": {
    params: {
      actor?: string;
      workspace_id: string;
    };
    result: UnwatchResult;
  };
  /** Notifies this connection of changes in a workspace; with since_seq first of those since then, which may come before the answer. Gap says that not all of them can be reported: read again. Right: read. */
  "workspace/watch": {
    params: {
      actor?: string;
      /** the seq of the last notification of this workspace, or of the last watch or unwatch */
      since_seq?: null | number;
      workspace_id: string;
    };
    result: UnwatchResult;
  };
}

/** Params of the notifications. */
export interface Notifications {
  /** How far the backtest is that this connection runs. */
  "backtest/progress": {
    all_files: number;
    /** judged so far, also by an earlier run */
    calls: number;
    /** read to their end */
    files: number;
    /** an estimate; 0 if there is none yet */
    left_ms: number;
    /** calls a second */
    rate: number;
  };
  /** Something happened in the engine, for connections that watch its events. */
  "event": Event;
  /** Manifests were kept, by whatever gateway on the database: those that this connection watches for. */
  "manifest/kept": {
    /** the new manifests, in the order in which they were kept, as manifest/overview has them */
    rows: Row[];
  };
  /** The document of a scope was saved, archived or restored, in a workspace that this connection watches. */
  "thread/agents_doc/changed": {
    /** what was done last */
    action: "created" | "renamed" | "moved" | "deleted" | "saved" | "archived" | "restored" | "gap";
    actor: string;
    /** how many folders below inherit the document, or would; null if it is unknown */
    affects_count: null | number;
    /** a folder's id; null is the root */
    folder_id: null | string;
    /** watch again with this since_seq, and nothing is missed */
    seq: number;
    /** the scope's document now; null if it was archived */
    summary: null | AgentsDoc;
    workspace_id: string;
  };
  /** A workspace, folder or thread was made, renamed, moved or deleted, or a document was saved, archived or restored, in a workspace that this connection watches. */
  "thread/tree/changed": {
    /** what was done last; gap: read the workspace again */
    action: "created" | "renamed" | "moved" | "deleted" | "saved" | "archived" | "restored" | "gap";
    actor: string;
    /** the summary of a document that was saved, archived or restored, as thread/tree has it */
    agents_doc: null | AgentsDoc;
    folder: null | Folder;
    /** more has changed than is reported: read everything again */
    gap: boolean;
    /** watch again with this since_seq, and nothing is missed */
    seq: number;
    thread: null | Thread;
    workspace: null | Workspace;
    workspace_id: string;
  };
  /** A turn that nobody ended was ended as interrupted: one that this connection began or used, or of a workspace that it watches, by the same token. */
  "turn/ended": {
    ended_at: string;
    handle: string;
    /** idle: no call for as long as serve.turn_idle allows; stopping: the gateway stops */
    reason: string;
    thread_id: string;
    turn_id: string;
    workspace_id: string;
  };
}
