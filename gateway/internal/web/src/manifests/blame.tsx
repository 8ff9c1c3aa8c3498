// Turn by turn: what broke the provider's cached prefix.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { address, navigate, route } from "../router";
import type { Result } from "../rpc";
import { number } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown, Tag } from "../ui/parts";
import { Table } from "../ui/table";
import { plain } from "../ui/unseen";
import { useCall, useTitle } from "../ui/use";
import { causes, ownerName, sum } from "./words";

type Turn = Result<"manifest/blame">["turns"][number];

export function Blame(): JSX.Element {
  useTitle("Cache breaks");
  const workspace = route.value.query.get("workspace") ?? "";
  const thread = route.value.query.get("thread") ?? "";
  const got = useCall("manifest/blame", thread ? { limit: 200, thread_id: thread, ...(workspace && { workspace_id: workspace }) } : null);
  const turns = got.data?.turns ?? [];
  return (
    <>
      <Head title="What broke the prompt cache" sub={thread && <>thread <Shown text={thread} />: {number(sum(turns.map((t) => t.tokens_lost)))} tokens were read again</>} />
      <Thread thread={thread} workspace={workspace} />
      <Problem error={got.error} retry={got.reload} />
      {got.loading && !got.data && <Busy what="Reading the thread" />}
      {got.data && turns.length === 0 && <Empty title="The thread has no prompts" />}
      {turns.length > 0 && <Strip turns={turns} />}
      {turns.length > 0 && (
        <Table label="Turns" rows={turns} rowKey={(t) => t.manifest_id} columns={[
          { name: "Turn", cell: (t) => <a href={address(["manifests", t.manifest_id])}><Shown text={t.turn_id} /></a> },
          { name: "What changed", cell: (t) => (t.cause ? <Tag tone={toneOf(t)}>{causes[t.cause] ?? t.cause}</Tag> : <Tag tone={t.of_agent ? "info" : "good"}>{t.of_agent ? "not known here: the agent compiles the request" : "nothing"}</Tag>) },
          { name: "Where", cell: (t) => <Shown text={t.broke_at || t.tool || "–"} /> },
          { name: "By", cell: (t) => (t.cause ? <Shown text={ownerName(t.owner)} /> : "–") },
          { name: "Read again", right: true, cell: (t) => number(t.tokens_lost) },
          { name: "From the cache", right: true, wide: true, cell: (t) => number(t.actual) },
        ]} />
      )}
    </>
  );
}

const toneOf = (t: Turn): "good" | "info" | "warn" => (t.of_agent ? "info" : !t.cause ? "good" : t.expected ? "info" : "warn");

function Thread({ thread, workspace }: { thread: string; workspace: string }): JSX.Element {
  const [value, set] = useState(thread);
  return (
    <form class="tools" onSubmit={(e) => { e.preventDefault(); navigate(address(["manifests", "blame"], { workspace, thread: value.trim() }), true); }}>
      <label>Thread <input value={value} required onInput={(e) => set(e.currentTarget.value)} /></label>
      <button type="submit">Show</button>
    </form>
  );
}

/** A column for each turn, as high as what was read again. */
function Strip({ turns }: { turns: Turn[] }): JSX.Element {
  const most = Math.max(1, ...turns.map((t) => t.tokens_lost));
  const each = Math.min(26, 960 / turns.length);
  return (
    <figure class="card strip">
      <svg viewBox={`0 0 ${Math.max(200, turns.length * each)} 70`} role="img" aria-label="Tokens that were read again, by turn; the table below has the numbers">
        {turns.map((t, i) => (
          <rect key={t.manifest_id} class={toneOf(t)} x={i * each + 1} width={Math.max(1, each - 2)} y={66 - 60 * (t.tokens_lost / most)} height={Math.max(2, 60 * (t.tokens_lost / most))}>
            <title>{plain(t.turn_id)}: {number(t.tokens_lost)}</title>
          </rect>
        ))}
      </svg>
      <figcaption class="quiet">tokens read again, oldest turn first</figcaption>
    </figure>
  );
}
