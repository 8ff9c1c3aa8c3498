// What a configuration would have decided about what agents did.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, type Result } from "../rpc";
import { who } from "../session";
import { useAction, useFocusKept } from "../ui/action";
import { count, number } from "../ui/format";
import { Busy, Empty, Head, Problem } from "../ui/parts";
import { plain } from "../ui/unseen";
import { useCall, useTitle } from "../ui/use";
import { ReportView } from "./report";
import { run, state, type Query } from "./run";

type Choice = Result<"backtest/configs">;

const periods = [7, 30, 90];

export function Backtest(): JSX.Element {
  useTitle("Backtest");
  const choice = useCall("backtest/configs", {});
  const s = state.value.who === who() ? state.value : { running: false };
  return (
    <>
      <Head title="Backtest" sub="What a configuration would have decided about what your agents did, by their transcripts or by the log (manifest.keep_inputs). Nothing is executed." />
      <Problem error={choice.error} retry={choice.reload} />
      {choice.data ? <Form choice={choice.data} running={s.running} /> : choice.loading && <Busy what="Asking for the configurations" />}
      {s.running && <Progress pace={s.pace} />}
      <Problem error={s.error} />
      {s.report && <ReportView report={s.report} />}
    </>
  );
}

function Form({ choice, running }: { choice: Choice; running: boolean }): JSX.Element {
  const first = choice.configs.find((c) => !c.error)?.name ?? "";
  const [query, set] = useState<Query>({ config: first, days: 30 });
  const change = (some: Partial<Query>): void => set({ ...query, ...some });
  if (choice.configs.length === 0) return <Empty title="No configuration file is in force"><p>Start the gateway with <code>--config</code>, or write one with <code>grapnel init</code>.</p></Empty>;
  const submit = (e: Event): void => {
    e.preventDefault();
    if (!running) void run(query);
  };
  return (
    <form class="tools backtests" onSubmit={submit}>
      <label>Configuration <select value={query.config} onChange={(e) => change({ config: e.currentTarget.value })}><Configs list={choice.configs} /></select></label>
      <label>Period
        <select value={String(query.days)} onChange={(e) => change({ days: Number(e.currentTarget.value) })}>{periods.map((d) => <option key={d} value={String(d)}>{d} days</option>)}</select>
      </label>
      <label>Agent
        <select value={query.agent ?? ""} onChange={(e) => change({ agent: e.currentTarget.value })}><option value="">all</option>{choice.agents.map((a) => <option key={a} value={a}>{a === "log" ? "those in the log" : a}</option>)}</select>
      </label>
      <label>Compared with <select value={query.against ?? ""} onChange={(e) => change({ against: e.currentTarget.value })}><option value="">nothing</option><Configs list={choice.configs} /></select></label>
      <button type="submit" class="primary" disabled={!first} aria-disabled={running}>{running ? "Running…" : "Run"}</button>
    </form>
  );
}

function Configs({ list }: { list: Choice["configs"] }): JSX.Element {
  return <>{list.map((c) => <option key={c.name} value={c.name} disabled={c.error !== ""}>{plain(c.error || c.name)}{c.in_force && " (in force)"}</option>)}</>;
}

function Progress({ pace: p }: { pace: typeof state.value.pace }): JSX.Element {
  const cancel = useAction(() => call("backtest/cancel", {}));
  useFocusKept(true);
  return (
    <section class="card" aria-label="Progress">
      {p ? (
        <>
          <progress aria-label="Files" max={p.all_files} value={p.files} />
          <p>{count(p.calls, "call", "calls")}, {number(p.rate)} a second, {number(p.files)} of {count(p.all_files, "file", "files")}{p.left_ms > 0 && `, about ${Math.ceil(p.left_ms / 1000)} s left`}</p>
        </>
      ) : <Busy what="Looking for transcripts" />}
      <div class="tools"><button type="button" aria-disabled={cancel.busy} onClick={cancel.run}>Cancel</button> <span class="quiet">The next run goes on from where it was.</span></div>
      <Problem error={cancel.error} />
    </section>
  );
}
