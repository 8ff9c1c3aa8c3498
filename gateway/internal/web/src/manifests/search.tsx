// Finding manifests by what is in them.
import type { JSX } from "preact";
import { address, navigate, route } from "../router";
import type { Params } from "../rpc";
import { count, number } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { useCall, useTitle } from "../ui/use";

/** Fields of the form: the name in the address, and what it says. The terms are those of "grapnel manifest find". */
const terms: [string, string, string][] = [
  ["section", "Section", "agents_md"],
  ["plugin", "Plugin, or plugin@version", "house@1.0.0"],
  ["hash", "Hash or fingerprint", "sha256:…"],
  ["tool", "Tool", "shell"],
  ["diagnostic", "Diagnostic", "truncated"],
];
const places: [string, string, string][] = [["workspace", "Workspace", "all"], ["thread", "Thread", "all"]];

export function Search(): JSX.Element {
  useTitle("Search");
  const { query } = route.value;
  const params = paramsOf(query);
  const got = useCall("manifest/find", params);
  const submit = (e: SubmitEvent): void => {
    e.preventDefault();
    const given = new FormData(e.currentTarget as HTMLFormElement);
    navigate(address(["manifests", "search"], Object.fromEntries([...given].map(([k, v]) => [k, String(v).trim()]))), true);
  };
  return (
    <>
      <Head title="Search manifests" />
      <form class="card search" onSubmit={submit}>
        <label class="whole">Words of a prompt, or a sentence in quotes <input name="sentence" defaultValue={query.get("sentence") ?? ""} placeholder='words in any order, or "exactly this"' /></label>
        {[...terms, ...places].map(([name, label, hint]) => (
          <label key={name}>{label} <input name={name} defaultValue={query.get(name) ?? ""} placeholder={hint} /></label>
        ))}
        <button type="submit" class="primary">Search</button>
      </form>
      <Problem error={got.error} />
      {got.loading && <Busy what="Searching" />}
      {got.data && <Found found={got.data} />}
    </>
  );
}

/** Null where nothing is asked for. */
function paramsOf(query: URLSearchParams): Params<"manifest/find"> | null {
  const asked = terms.flatMap(([kind]) => (query.get(kind) ? [{ kind, value: query.get(kind) ?? "" }] : []));
  const asIs = /^"(.*)"$/.exec(query.get("sentence") ?? "");
  const sentence = asIs?.[1] ?? query.get("sentence") ?? "";
  if (asked.length === 0 && !sentence) return null;
  return {
    ...(asked.length > 0 && { terms: asked }), ...(sentence && { sentence, any_order: !asIs }),
    ...(query.get("workspace") && { workspace_id: query.get("workspace") ?? "" }), ...(query.get("thread") && { thread_id: query.get("thread") ?? "" }),
    limit: 200,
  };
}

function Found({ found }: { found: import("../rpc").Result<"manifest/find"> }): JSX.Element {
  if (found.total === 0) return <Empty title="No manifest has all of that" />;
  return (
    <>
      <p role="status">{count(found.total, "manifest", "manifests")} in {count(found.threads, "thread", "threads")}{found.records.length < found.total && `; the newest ${number(found.records.length)} are shown`}{found.incomplete && "; the search was cut short"}.</p>
      <Table label="Manifests that were found" rows={found.records} rowKey={(r) => r.manifest_id} columns={[
        { name: "Time", cell: (r) => <Time at={r.created_at} /> },
        { name: "Turn", cell: (r) => <a href={address(["manifests", r.manifest_id])}><Shown text={r.thread_id + " / " + r.turn_id} /></a> },
        { name: "Workspace", wide: true, cell: (r) => <Shown text={r.workspace_id || "–"} /> },
      ]} />
      {found.texts.length > 0 && (
        <Table label="Texts that hold the sentence" rows={found.texts} rowKey={(t) => t.hash} columns={[
          { name: "Section", cell: (t) => <a href={address(["manifests", t.manifest_id], { section: t.section_id })}><Shown text={t.section_id} /></a> },
          { name: "Owners", cell: (t) => <Shown text={t.owners.join(", ")} /> },
          { name: "Fingerprint", wide: true, cell: (t) => <code title={t.hash}>{t.fingerprint}</code> },
        ]} />
      )}
    </>
  );
}
