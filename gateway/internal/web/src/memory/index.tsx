// What is remembered of users and projects.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { MemoryItem } from "./items";
import { call } from "../rpc";
import { address, navigate, route } from "../router";
import { may } from "../session";
import { Confirm, useChoice } from "../ui/action";
import { count, number } from "../ui/format";
import { Folded } from "../ui/json";
import { Busy, Empty, Head, Problem, Shown, Tag, Time } from "../ui/parts";
import { Table, type Column } from "../ui/table";
import { plain } from "../ui/unseen";
import { useCall, useTitle } from "../ui/use";
import { useItems } from "./items";

const scopes = ["workspace", "thread", "agent", "user"];
const categories = ["preference", "fact", "decision", "task", "instruction", "other"];

export function Memory(): JSX.Element {
  useTitle("Memory");
  const workspaces = useCall("workspace/list", {});
  const all = workspaces.data?.workspaces ?? [];
  const id = route.value.query.get("workspace_id") || all[0]?.id || "";
  return (
    <>
      <Head title="Memory" sub="What the memory plugin keeps, and brings into prompts.">
        <label>Workspace <input type="search" list="workspaces" value={id} placeholder="id" size={14} onChange={(e) => go({ workspace_id: e.currentTarget.value.trim() })} /></label>
        <datalist id="workspaces">{all.map((w) => <option key={w.id} value={w.id}>{plain(w.name)}</option>)}</datalist>
      </Head>
      <Problem error={workspaces.error} retry={workspaces.reload} />
      {id ? <Workspace key={id} id={id} /> : workspaces.data ? <Empty title="Whose memories?"><p>Type the id of a workspace.</p></Empty> : workspaces.loading && <Busy what="Asking for the workspaces" />}
    </>
  );
}

/** Changes some parameters of the address. */
function go(change: Record<string, string>): void {
  navigate(address(["memory"], { ...Object.fromEntries(route.value.query), ...change }), true);
}

function Workspace({ id }: { id: string }): JSX.Element {
  const q = route.value.query;
  const items = useItems({ workspace: id, query: q.get("q") ?? "", scope: q.get("scope") ?? "", category: q.get("category") ?? "" });
  const choice = useChoice(items.rows.map((i) => i.id));
  const [asks, ask] = useState(false);
  const forget = (): Promise<void> => call("memory/forget", { workspace_id: id, ids: choice.ids }).then(items.reload);
  const chosen = items.rows.filter((i) => choice.has(i.id));
  return (
    <>
      <Search query={q.get("q") ?? ""} scope={q.get("scope") ?? ""} category={q.get("category") ?? ""} />
      <Problem error={items.error} retry={items.reload} />
      {may("write") && items.rows.length > 0 && (
        <div class="tools" role="group" aria-label="Selected memories">
          <label class="check"><input type="checkbox" checked={chosen.length === items.rows.length} onChange={(e) => choice.all(e.currentTarget.checked)} /> All shown</label>
          <button type="button" class="danger" disabled={chosen.length === 0} onClick={() => ask(true)}>Forget {chosen.length || ""}…</button>
        </div>
      )}
      <Items rows={items.rows} choice={choice} loading={items.loading} />
      {items.more && <p><button type="button" onClick={items.more}>Show more</button></p>}
      {asks && (
        <Confirm title={"Forget " + count(chosen.length, "memory", "memories") + "?"} verb="Forget" act={forget} close={() => ask(false)}>
          <p>The text and its older versions are removed for good.</p>
          <ul class="named">{chosen.slice(0, 10).map((i) => <li key={i.id}><Shown text={i.text} /></li>)}</ul>
          {chosen.length > 10 && <p class="quiet">and {number(chosen.length - 10)} more</p>}
        </Confirm>
      )}
    </>
  );
}

function Search({ query, scope, category }: { query: string; scope: string; category: string }): JSX.Element {
  const [text, setText] = useState(query);
  const submit = (e: Event): void => {
    e.preventDefault();
    go({ q: text.trim() });
  };
  return (
    <form class="tools" role="search" onSubmit={submit}>
      <input type="search" aria-label="Search memories" placeholder="Search" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <button type="submit">Search</button>
      {query === "" ? (
        <>
          <Filter name="scope" label="Scope" value={scope} options={scopes} />
          <Filter name="category" label="Category" value={category} options={categories} />
        </>
      ) : <button type="button" class="plain" onClick={() => { setText(""); go({ q: "" }); }}>Show all</button>}
    </form>
  );
}

function Filter({ name, label, value, options }: { name: string; label: string; value: string; options: string[] }): JSX.Element {
  return (
    <select aria-label={label} value={value} onChange={(e) => go({ [name]: e.currentTarget.value })}>
      <option value="">{label}: all</option>
      {options.map((o) => <option key={o} value={o}>{o}</option>)}
    </select>
  );
}

function Items({ rows, choice, loading }: { rows: MemoryItem[]; choice: ReturnType<typeof useChoice<string>>; loading: boolean }): JSX.Element {
  if (rows.length === 0) return loading ? <Busy what="Asking for memories" /> : <Empty title="Nothing is remembered here" />;
  const select: Column<MemoryItem> = {
    name: "Select",
    cell: (i) => <input type="checkbox" aria-label={"Select: " + plain(i.text.slice(0, 60))} checked={choice.has(i.id)} onChange={() => choice.toggle(i.id)} />,
  };
  return <Table label="Memories" columns={may("write") ? [select, ...itemColumns] : itemColumns} rows={rows} rowKey={(i) => i.id} rowClass={(i) => (choice.has(i.id) ? "chosen" : "")} />;
}

const itemColumns: Column<MemoryItem>[] = [
  { name: "Memory", cell: (i) => <Text item={i} /> },
  { name: "Category", cell: (i) => <Tag tone="plain">{i.category}</Tag> },
  { name: "Scope", wide: true, cell: (i) => <>{i.scope}{i.scope_id && <><br /><small class="quiet"><Shown text={i.scope_id} /></small></>}</> },
  { name: "Uses", right: true, wide: true, cell: (i) => number(i.uses) },
  { name: "Last used", wide: true, cell: (i) => <Time at={i.last_used_at} relative /> },
  { name: "Updated", wide: true, cell: (i) => <Time at={i.updated_at} relative /> },
];

function Text({ item: i }: { item: MemoryItem }): JSX.Element {
  const { text, evidence, ...rest } = i;
  return (
    <div class="memory">
      <p><Shown text={text} /></p>
      {evidence && evidence !== text && <p class="quiet">“<Shown text={evidence} />”</p>}
      <Folded title={<small class="quiet">Details{i.slot && <>, slot <Shown text={i.slot} /></>}</small>} value={rest} />
    </div>
  );
}
