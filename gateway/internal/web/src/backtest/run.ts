// The backtest that this tab runs, and its report: they stay while other views are shown.
import { signal } from "@preact/signals";
import { call, on, type Params, type Result } from "../rpc";
import type { Notifications } from "../schema";
import { who } from "../session";

export type Report = Result<"backtest/run">;
export type Row = Report["rows"][number];
export type Query = Params<"backtest/run">;

interface State {
  running: boolean;
  pace?: Notifications["backtest/progress"];
  report?: Report;
  error?: unknown;
  /** Who ran it: the next one who logs in does not see it. */
  who?: string;
}

export const state = signal<State>({ running: false });

export async function run(query: Query): Promise<void> {
  const own = { running: true, who: who() };
  state.value = own;
  const deaf = on("backtest/progress", (pace) => (state.value = { ...own, pace }));
  const ended = await call("backtest/run", query).then((report) => ({ report }), (error: unknown) => ({ error }));
  deaf();
  state.value = { ...own, ...ended, running: false };
}
