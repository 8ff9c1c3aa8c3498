// Dispatching one phase by hand, to see what the hooks do with it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, type Params } from "../rpc";
import { address, navigate, route } from "../router";
import type { Json } from "../schema";
import { may } from "../session";
import { useAction } from "../ui/action";
import { JsonField } from "../ui/json";
import { Busy, Head, Problem, Shown, Time } from "../ui/parts";
import { plain } from "../ui/unseen";
import { useCall, useTitle } from "../ui/use";
import { Fields } from "./form";
import { OutcomeView, outcomeWord, type Outcome } from "./outcome";
import { blank, type Schema } from "./schema";
import { forgetSent, remember, sent, type Sent } from "./sent";

interface Phase {
  phase: string;
  description: string;
  input: Json;
}

type Context = { [name: string]: string };

const contextNames = ["workspace_id", "thread_id", "turn_id", "session_id", "agent_id", "dir"];

export function Try(): JSX.Element {
  useTitle("Try");
  const schemas = useCall("phase/schemas", {});
  const phases = schemas.data?.phases ?? [];
  const phase = phases.find((p) => p.phase === route.value.query.get("phase")) ?? phases[0];
  return (
    <>
      <Head title="Try" sub="Dispatches one phase, and shows what every hook made of it." />
      <Problem error={schemas.error} retry={schemas.reload} />
      {phase ? <Bench phases={phases} phase={phase} /> : schemas.loading && <Busy what="Asking for the phases" />}
    </>
  );
}

const beginning = (): Context => Object.fromEntries(contextNames.flatMap((n) => {
  const value = route.value.query.get(n);
  return value ? [[n, value]] : [];
}));

function Bench({ phases, phase }: { phases: Phase[]; phase: Phase }): JSX.Element {
  const schema = phase.input as Schema;
  const [context, setContext] = useState<Context>(beginning);
  const [inputs, setInputs] = useState<Record<string, Json | undefined>>({});
  const [outcome, setOutcome] = useState<Outcome>();
  const input = phase.phase in inputs ? inputs[phase.phase] : blank(schema, schema);
  const setInput = (value: Json | undefined, of = phase.phase): void => setInputs((all) => ({ ...all, [of]: value }));
  const [next, send] = useState<{ phase: string; context: Context; input: Json | undefined }>();
  const action = useAction(async () => {
    if (next) setOutcome(await dispatch(next.phase, next.context, next.input));
  });
  useEffect(() => {
    if (next) action.run();
  }, [next]);
  useEffect(() => {
    if (outcome) document.getElementById("outcome")?.focus();
  }, [outcome]);
  const load = (s: Sent, again: boolean): void => {
    navigate(address(["try"], { phase: s.phase }), true);
    setContext(s.context);
    setInput(s.input, s.phase);
    if (again) send({ phase: s.phase, context: s.context, input: s.input });
  };
  const submit = (e: Event): void => {
    e.preventDefault();
    send({ phase: phase.phase, context, input });
  };
  return (
    <>
      <form class="bench" onSubmit={submit} onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && submit(e)}>
        <Chooser phases={phases} phase={phase} busy={action.busy} />
        <ContextFields context={context} change={setContext} />
        <div class="columns">
          <section class="card" aria-labelledby="input"><h2 id="input">Input</h2><Fields key={phase.phase} root={schema} schema={schema} value={input} change={setInput} /></section>
          <section class="card sticky" aria-label="Input as JSON"><JsonField key={phase.phase} label="The same as JSON" value={input} change={setInput} rows={12} /></section>
        </div>
      </form>
      <Problem error={action.error} />
      {outcome && <OutcomeView outcome={outcome} />}
      <Last load={load} />
    </>
  );
}

async function dispatch(phase: string, context: Context, input: Json | undefined): Promise<Outcome> {
  const given = Object.fromEntries(Object.entries(context).filter(([, v]) => v !== ""));
  // The exchanges have what hooks were sent, which only operators may see.
  const params = { phase, context: given, input, ...(may("admin") ? { record: true } : {}) } as Params<"phase/dispatch">;
  const at = new Date().toISOString();
  try {
    const outcome = (await call("phase/dispatch", params)) as Outcome | null;
    if (!outcome) throw new Error("The gateway answered without an outcome.");
    remember({ at, phase, context, input, outcome: outcomeWord(outcome)[1] });
    return outcome;
  } catch (err) {
    remember({ at, phase, context, input, outcome: err instanceof Error ? err.message : String(err) });
    throw err;
  }
}

function Chooser({ phases, phase, busy }: { phases: Phase[]; phase: Phase; busy: boolean }): JSX.Element {
  return (
    <div class="chooser">
      <label for="phase">Phase</label>
      <select id="phase" value={phase.phase} onChange={(e) => navigate(address(["try"], { phase: e.currentTarget.value }), true)}>
        {phases.map((p) => <option key={p.phase} value={p.phase}>{p.phase}</option>)}
      </select>
      <button type="submit" class="primary" aria-disabled={busy} title="Ctrl+Enter">{busy ? "Dispatching…" : "Dispatch"}</button>
      <span class="quiet">{phase.description}</span>
    </div>
  );
}

function ContextFields({ context, change }: { context: Context; change: (c: Context) => void }): JSX.Element {
  const workspaces = useCall("workspace/list", may("read") ? {} : null);
  return (
    <fieldset class="group context">
      <legend>Context</legend>
      {contextNames.map((name) => (
        <label key={name}>{name}
          <input value={context[name] ?? ""} list={name === "workspace_id" ? "workspaces" : undefined} placeholder={name === "workspace_id" ? "none" : undefined} spellcheck={false} onInput={(e) => change({ ...context, [name]: e.currentTarget.value })} />
        </label>
      ))}
      <datalist id="workspaces">{workspaces.data?.workspaces.map((w) => <option key={w.id} value={w.id}>{plain(w.name)}</option>)}</datalist>
    </fieldset>
  );
}

function Last({ load }: { load: (s: Sent, again: boolean) => void }): JSX.Element | null {
  if (sent.value.length === 0) return null;
  return (
    <section class="part" aria-labelledby="last">
      <div class="line"><h2 id="last">Sent in this tab</h2> <button type="button" class="plain" onClick={forgetSent}>Clear</button></div>
      <ul class="last">
        {sent.value.map((s) => (
          <li key={s.at} class="line">
            <Time at={s.at} /> <code>{s.phase}</code> <span class="quiet grow"><Shown text={s.outcome} /></span>
            <button type="button" onClick={() => load(s, false)}>Edit</button>
            <button type="button" onClick={() => load(s, true)}>Send again</button>
          </li>
        ))}
      </ul>
    </section>
  );
}
