// Whether the log is whole.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { address, navigate, route } from "../router";
import { call, type Result } from "../rpc";
import { useAction } from "../ui/action";
import { number } from "../ui/format";
import { Busy, Head, Problem, Shown, Tag } from "../ui/parts";
import { Table } from "../ui/table";
import { useTitle } from "../ui/use";

const kinds: Record<string, string> = {
  altered: "the record was altered",
  missing: "a record is missing",
  reordered: "records are in another order",
  inserted: "a record was inserted",
  fingerprint: "a text is not the one that was recorded",
  schema: "it is not a record of this program",
};

export function Verify(): JSX.Element {
  useTitle("Verify");
  const workspace = route.value.query.get("workspace") ?? "";
  const thread = route.value.query.get("thread") ?? "";
  const [result, setResult] = useState<Result<"manifest/verify">>();
  const { busy, error, run } = useAction(() => {
    setResult(undefined);
    return call("manifest/verify", { ...(workspace && { workspace_id: workspace }), ...(thread && { thread_id: thread }) }).then(setResult);
  });
  const narrow = (name: "workspace" | "thread", value: string): void => navigate(address(["manifests", "verify"], { workspace, thread, [name]: value.trim() }), true);
  return (
    <>
      <Head title="Is the log whole?" sub="Each record carries the hash of the one before it. Verifying reads all of them, and every text that was kept." />
      <div class="tools">
        <label>Workspace <input value={workspace} placeholder="all" onChange={(e) => narrow("workspace", e.currentTarget.value)} /></label>
        <label>Thread <input value={thread} placeholder="all" onChange={(e) => narrow("thread", e.currentTarget.value)} /></label>
        <button type="button" class="primary" aria-disabled={busy} onClick={run}>Verify</button>
      </div>
      {busy && <Busy what="Reading every record; a long log takes up to a minute" />}
      <Problem error={error} retry={run} />
      <div role="status">
        {result?.ok && <p class="verdict"><Tag tone="good">whole</Tag> {number(result.checked)} records were checked{result.anchored ? ", and the anchor holds" : ""}.</p>}
        {result && !result.ok && (
          <p class="verdict">
            <Tag tone="bad">broken</Tag> {number(result.checked)} records were checked.
            {result.first_bad && <> The first bad one is <a href={address(["manifests", result.first_bad.manifest_id])}>record {result.first_bad.seq}</a>: {kinds[result.first_bad.reason]}.</>}
          </p>
        )}
      </div>
      {!!result?.problems.length && (
        <Table label="Problems" rows={result.problems.map((p, i) => ({ ...p, i }))} rowKey={(p) => String(p.i)} columns={[
          { name: "Record", cell: (p) => (p.manifest_id ? <a href={address(["manifests", p.manifest_id])}>{p.seq}</a> : p.seq) },
          { name: "Thread", cell: (p) => <Shown text={p.thread_id} /> },
          { name: "What", cell: (p) => <Tag tone="bad">{kinds[p.reason] ?? p.reason}</Tag> },
          { name: "Detail", wide: true, cell: (p) => <Shown text={p.detail} /> },
        ]} />
      )}
    </>
  );
}
