// Kit for plugins of Grapnel. Begin with definePlugin and serve.

export { allow, ask, audit, bundle, ConfigError, context, deny, diagnostic, HostError, job, noop, PluginError, policy, reminder, rewrite, section } from "./answers.js";
export type * from "./generated.js";
export type { CompletionRequest, CompletionResponse, Effective, Host } from "./host.js";
export {
  type Answer, type Call, type Caller, type Configuration, type CustomInput, definePlugin, type Falsy, type Handler, type Handlers, type Hook, Plugin, type PluginDefinition,
  setup, type Setup, tool, type Tool, type ToolCall, type ToolResult, toolsOf,
} from "./plugin.js";
export { check, type FromSchema, type Mistake, type Schema } from "./schema.js";
export { log, serve } from "./serve.js";
