// The hooks of a plugin, with how long they take.
import type { JSX } from "preact";
import { address } from "../router";
import { may } from "../session";
import { milliseconds, number } from "../ui/format";
import { Shown, Tag } from "../ui/parts";
import { Table, type Column } from "../ui/table";
import { LastErrorText } from "./facts";
import { hookName, hookWord, type Hook } from "./words";

const timeouts = (h: Hook): number => h.failures["timeout"] ?? 0;

export function Hooks({ hooks }: { hooks: Hook[] }): JSX.Element {
  const columns: Column<Hook>[] = [
    { name: "Hook", cell: (h) => <><span class="name"><Shown text={hookName(h)} /></span><br /><Phase hook={h} /></> },
    { name: "State", cell: (h) => <StateTag hook={h} /> },
    { name: "p50, p99", cell: (h) => <Took hook={h} /> },
    { name: "Runs", right: true, cell: (h) => <>{number(h.runs)}{h.cached > 0 && <><br /><span class="quiet">+{number(h.cached)} cached</span></>}</> },
    { name: "Failed", right: true, cell: (h) => <Failed hook={h} /> },
    { name: "Last turn", wide: true, cell: (h) => <a href={address(["manifests", "latest"], { tab: "why", about: h.subscription })}>Did it run?</a> },
    { name: "Last error", cell: (h) => <LastErrorText error={h.last_error} /> },
  ];
  return (
    <>
      <Table label="Hooks" columns={columns} rows={hooks} rowKey={(h) => h.subscription + "\n" + h.phase + h.role} />
      <p class="quiet legend">Thick bar: p50. Thin bar: p99. Dot: the longest run. Red line: the timeout.</p>
    </>
  );
}

function StateTag({ hook }: { hook: Hook }): JSX.Element {
  const [tone, word] = hookWord(hook);
  return <Tag tone={tone} title={hook.breaker ? "The breaker is " + hook.breaker.replace("_", " ") + "." : undefined}><Shown text={word} /></Tag>;
}

/** The text budget of a hook that has one. */
function budget({ budget: b }: Hook): string {
  const parts = [];
  if (b?.chars) parts.push(number(b.chars) + " characters");
  if (b?.tokens) parts.push(number(b.tokens) + " tokens");
  return parts.length > 0 ? " · at most " + parts.join(", ") : "";
}

function Phase({ hook: h }: { hook: Hook }): JSX.Element {
  const link = h.role !== "tool" && h.role !== "host" && may("dispatch");
  const phase = link ? <a href={address(["try"], { phase: h.phase })}>{h.phase}</a> : h.phase;
  return <small class="quiet">{phase} · {h.role}{budget(h)}</small>;
}

function Failed({ hook: h }: { hook: Hook }): JSX.Element {
  const details = [];
  if (timeouts(h) > 0) details.push(number(timeouts(h)) + " timed out");
  if (h.fail_open > 0) details.push(number(h.fail_open) + " fail-open");
  return <>{number(h.failed)}{details.map((d) => <span key={d}><br /><span class="quiet">{d}</span></span>)}</>;
}

function Took({ hook: h }: { hook: Hook }): JSX.Element {
  if (h.took.count === 0) return <span class="quiet">–</span>;
  return (
    <div class="took">
      <LatencyBar p50={h.took.p50_ms} p99={h.took.p99_ms} most={h.took.max_ms} timeout={h.timeout_ms} />
      <span>{milliseconds(h.took.p50_ms)} <span class="quiet">/</span> {milliseconds(h.took.p99_ms)}<span class="quiet"> of {milliseconds(h.timeout_ms)}</span></span>
    </div>
  );
}

const barWidth = 130;

/** p50 as a thick bar, p99 as a thin one, the maximum as a dot, and the timeout as a line at the right end. */
function LatencyBar({ p50, p99, most, timeout }: { p50: number; p99: number; most: number; timeout: number }): JSX.Element {
  const x = (ms: number): number => Math.max(1.5, Math.min(1, ms / timeout) * (barWidth - 4));
  const label = `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}, longest ${milliseconds(most)}, timeout ${milliseconds(timeout)}`;
  const near = p99 > 0.8 * timeout;
  return (
    <svg class={near ? "latency near" : "latency"} viewBox={`0 0 ${barWidth} 12`} role="img" aria-label={label}>
      <title>{label}</title>
      <line class="axis" x1="0" x2={barWidth} y1="6" y2="6" />
      <rect class="p99" x="0" y="4.5" width={x(p99)} height="3" rx="1.5" />
      <rect class="p50" x="0" y="2" width={x(p50)} height="8" rx="2" />
      <circle class="most" cx={x(most)} cy="6" r="1.7" />
      <line class="timeout" x1={barWidth - 1.5} x2={barWidth - 1.5} y1="0" y2="12" />
    </svg>
  );
}
