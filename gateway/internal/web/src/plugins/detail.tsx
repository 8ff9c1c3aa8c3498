import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, type Result } from "../rpc";
import { useAction } from "../ui/action";
import { count } from "../ui/format";
import { Empty, Head, Problem, Shown, Tag } from "../ui/parts";
import { useTitle } from "../ui/use";
import { PluginFacts, Sandbox } from "./facts";
import { Hooks } from "./hooks";
import { Issues } from "./issues";
import { mayOperate, ReloadButton } from "./reload";
import { pluginTone, type Hook, type Plugin, type Status } from "./words";

export function PluginDetail({ name, status, reload }: { name: string; status: Status; reload: () => void }): JSX.Element {
  useTitle(name);
  const plugin = status.plugins.find((p) => p.plugin === name);
  const hooks = status.hooks.filter((h) => h.plugin === name);
  const issues = status.issues.filter((t) => t.plugin === name);
  if (!plugin) return <Empty title="There is no such plugin"><p>The configuration in force does not declare it. <a href="/plugins">All plugins</a></p></Empty>;
  return (
    <>
      <Head title={<><Shown text={name} /> <Tag tone={pluginTone(plugin.state)}>{plugin.state}</Tag></>} sub={<a href="/plugins">← All plugins</a>}>
        <Release plugin={plugin} hooks={hooks} after={reload} />
        <ReloadButton after={reload} />
      </Head>
      {plugin.detail && plugin.state !== "ready" && <pre class="card"><Shown text={plugin.detail} /></pre>}
      {issues.length > 0 && <Issues issues={issues} ran />}
      <section class="card" aria-label="Facts"><PluginFacts plugin={plugin} /></section>
      <div class="part">
        <h2 id="hooks">Hooks</h2>
        {hooks.length > 0 ? <Hooks hooks={hooks} /> : <p class="quiet">It has no subscription in force.</p>}
      </div>
      <div class="columns">
        <Sandbox plugin={plugin} />
      </div>
    </>
  );
}

/** Whether a release would change something. */
const releasable = (p: Plugin, hooks: Hook[]): boolean =>
  p.state === "quarantined" || p.state === "backoff" || hooks.some((h) => h.breaker === "open" || h.breaker === "half_open");

const releases: Partial<Record<Plugin["state"], string>> = { quarantined: "Release from quarantine", backoff: "Start now" };

function Release({ plugin, hooks, after }: { plugin: Plugin; hooks: Hook[]; after: () => void }): JSX.Element | null {
  const [done, setDone] = useState<Result<"plugin/release">>(null);
  const action = useAction(async () => {
    setDone(await call("plugin/release", { plugin: plugin.plugin }));
    after();
    document.querySelector<HTMLElement>("h1")?.focus(); // the button goes away
  });
  if (!mayOperate()) return null;
  return (
    <>
      <Problem error={action.error} />
      <span role="status">{done && <Tag tone={pluginTone(done.state)} title={done.detail}>released: {done.state}{done.breakers.length > 0 && ", " + count(done.breakers.length, "breaker closed", "breakers closed")}</Tag>}</span>
      {(action.busy || releasable(plugin, hooks)) && (
        <button type="button" class="primary" aria-disabled={action.busy} onClick={action.run}>
          {action.busy ? "Starting…" : (releases[plugin.state] ?? "Close breakers")}
        </button>
      )}
    </>
  );
}
