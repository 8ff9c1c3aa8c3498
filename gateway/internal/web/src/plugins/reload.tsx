// Reading the configuration again, and what came of the last attempt.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../rpc";
import { may, me } from "../session";
import { useAction } from "../ui/action";
import { milliseconds } from "../ui/format";
import { Dialog, Problem, Shown, Tag, Time } from "../ui/parts";
import type { Status } from "./words";

type ReloadResult = NonNullable<Status["reload"]>;

/** Methods about the whole gateway refuse tokens that are bound to workspaces. */
export const mayOperate = (): boolean => may("admin") && me.value?.all_workspaces !== false;

export function ReloadButton({ after }: { after: () => void }): JSX.Element | null {
  const [result, show] = useState<ReloadResult>();
  const action = useAction(() => call("config/reload", {}).then((r) => {
    show(r);
    after();
  }));
  if (!mayOperate()) return null;
  return (
    <>
      <Problem error={action.error} />
      <button type="button" aria-disabled={action.busy} onClick={action.run}>{action.busy ? "Reloading…" : "Reload configuration"}</button>
      {result && (
        <Dialog title="Reload of the configuration" close={() => show(undefined)}>
          <Reloaded result={result} />
          <div class="buttons"><button type="button" class="primary" onClick={() => show(undefined)}>Close</button></div>
        </Dialog>
      )}
    </>
  );
}

export function Reloaded({ result: r }: { result: ReloadResult }): JSX.Element {
  return (
    <div class="reloaded">
      <p class="line">
        <Tag tone={r.ok ? "good" : "bad"}>{r.ok ? "in force" : "refused"}</Tag>
        <span class="quiet"><Time at={r.at} /> in {milliseconds(r.took_ms)}, {r.cause}{r.actor && " by "}{r.actor && <Shown text={r.actor} />}</span>
      </p>
      {!r.ok && <p>Nothing was changed. <Shown text={r.mistakes.length > 0 ? "" : r.error} /></p>}
      {r.mistakes.map((m, i) => (
        <div key={i} class="mistakes">
          <p><code><Shown text={`${m.file}:${m.line}:${m.column}`} /></code> <Shown text={m.message} /></p>
          {m.snippet && <pre><Shown text={m.snippet} /></pre>}
        </div>
      ))}
      <Keys title="Needs a restart" keys={r.needs_restart} />
      <Keys title="Changed" keys={r.changed} />
      {r.ok && r.changed.length === 0 && <p class="quiet">It is the same as before.</p>}
    </div>
  );
}

function Keys({ title, keys }: { title: string; keys: string[] }): JSX.Element | null {
  if (keys.length === 0) return null;
  return <div><h3>{title}</h3><ul class="keys">{keys.map((k) => <li key={k}><code><Shown text={k} /></code></li>)}</ul></div>;
}
