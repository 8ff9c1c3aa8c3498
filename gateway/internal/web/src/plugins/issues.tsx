import type { JSX } from "preact";
import { address } from "../router";
import { number } from "../ui/format";
import { Shown, Tag, Time } from "../ui/parts";
import { issueWord, type Issue } from "./words";

/** What needs attention, the worst first. */
export function Issues({ issues, ran }: { issues: Issue[]; ran: boolean }): JSX.Element {
  if (issues.length === 0) return <p class="calm"><Tag tone="good">no issues</Tag> <span class="quiet">Every plugin takes calls, and {ran ? "the last run of every hook that ran succeeded" : "no hook has run yet"}.</span></p>;
  return (
    <ul class="issues" aria-label="Issues">
      {issues.map((t) => <IssueRow key={[t.kind, t.plugin, t.subscription, t.phase].join("\n")} issue={t} />)}
    </ul>
  );
}

function IssueRow({ issue: t }: { issue: Issue }): JSX.Element {
  const [tone, word] = issueWord(t.kind);
  return (
    <li class={"issue " + tone}>
      <p class="line">
        <Tag tone={tone}>{word}</Tag>
        <a href={address(["plugins", t.plugin])}><Shown text={t.subscription || t.plugin} /></a>
        {t.code && t.code !== t.kind && <code class="quiet">{t.code}</code>}
        <span class="quiet"><Time at={t.at} relative /></span>
      </p>
      <p><Shown text={t.reason} />{counts(t)}</p>
      {t.hint && <p class="hint"><b>Hint</b> <Shown text={t.hint} /></p>}
    </li>
  );
}

function counts(t: Issue): string {
  const parts = [];
  if (t.failed_in_a_row > 0) parts.push(number(t.failed_in_a_row) + " runs failed in a row");
  if (t.fail_open > 0) parts.push(number(t.fail_open) + " phases went on without it");
  return parts.length > 0 ? " (" + parts.join("; ") + ")" : "";
}
