// The page's frame: logging in, the navigation, and the view of the address.
import "./begin";
import { render, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { broken } from "./rpc";
import { route } from "./router";
import { logIn, logOut, may, me, type Right } from "./session";
import { apply, setTheme, theme, type Theme } from "./theme";
import { Busy, Empty, Problem } from "./ui/parts";
import { loadEditor } from "./editor/load";
import { Manifests } from "./manifests";
import { Later } from "./ui/later";
import { Plugins } from "./plugins";
import { Try } from "./try";
import { Jobs } from "./jobs";
import { Memory } from "./memory";
import { Events } from "./events";
import { Backtest } from "./backtest";

interface View {
  /** The first segment of its addresses. */
  name: string;
  label: string;
  right: Right;
  /** The path of its icon, 20 by 20. */
  icon: string;
  view(): JSX.Element;
}

function loadDocuments(): Promise<() => JSX.Element> {
  loadEditor().catch(() => undefined); // beside it, not after it; who needs it says what failed
  return import("./documents/documents").then((m) => m.Documents);
}

function Documents(): JSX.Element {
  return <Later load={loadDocuments} what="Documents" />;
}

const views: View[] = [
  { name: "manifests", label: "Manifests", right: "read", icon: "M3 4h14M3 8h9M3 12h14M3 16h6", view: Manifests },
  { name: "documents", label: "Documents", right: "read", icon: "M5 2h7l4 4v12H5zM12 2v4h4M8 11h5M8 14h5", view: Documents },
  { name: "plugins", label: "Plugins", right: "admin", icon: "M8 2v4M12 2v4M5 6h10v4a5 5 0 0 1-10 0zM10 15v3", view: Plugins },
  { name: "try", label: "Try", right: "dispatch", icon: "M5 3l11 7-11 7z", view: Try },
  { name: "backtest", label: "Backtest", right: "admin", icon: "M3 10a7 7 0 1 0 2-5M3 3v4h4M10 6v4l3 2", view: Backtest },
  { name: "jobs", label: "Jobs", right: "admin", icon: "M10 2a8 8 0 1 0 .01 0M10 5v5l3 3", view: Jobs },
  { name: "memory", label: "Memory", right: "read", icon: "M4 5c0-1.7 12-1.7 12 0v10c0 1.7-12 1.7-12 0zM4 5c0 1.7 12 1.7 12 0M4 10c0 1.7 12 1.7 12 0", view: Memory },
  { name: "events", label: "Events", right: "admin", icon: "M2 11h4l2-6 4 11 2-5h4", view: Events },
];

function Frame(): JSX.Element {
  const main = useRef<HTMLElement>(null);
  const seen = views.filter((v) => may(v.right));
  const name = route.value.path[0] ?? seen[0]?.name ?? "";
  const view = seen.find((v) => v.name === name);
  const path = route.value.path.join("/");
  const shown = useRef({ name, path });
  useEffect(() => {
    const before = shown.current;
    shown.current = { name, path };
    const heading = main.current?.querySelector<HTMLElement>("h1");
    if (before.name !== name) heading?.focus({ preventScroll: true });
    // The element that had the focus may have gone with the page before.
    if (before.path !== path && document.activeElement === document.body) (heading ?? main.current)?.focus({ preventScroll: true });
  }, [name, path]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>Skip to content</a>
      <Navigation views={seen} current={name} />
      <main id="main" ref={main} tabIndex={-1}>
        {broken.value && <div class="offline" role="status">No connection to the gateway; trying again…</div>}
        {view ? <view.view key={name} /> : <Missing known={views.some((v) => v.name === name)} />}
      </main>
    </div>
  );
}

function Missing({ known }: { known: boolean }): JSX.Element {
  return (
    <Empty title={known ? "Your token does not let you see this" : "There is no such view"}>
      <p>{known ? "Log in with a token that has the right." : "The address may be mistyped."} <a href="/">To the start</a></p>
    </Empty>
  );
}

function Navigation({ views, current }: { views: View[]; current: string }): JSX.Element {
  return (
    <nav class="side" aria-label="Views">
      <a class="brand" href="/" aria-label="Grapnel, start"><Mark /><span>Grapnel</span></a>
      <ul>
        {views.map((v) => (
          <li key={v.name}>
            <a href={"/" + v.name} aria-current={v.name === current ? "page" : undefined}>
              <svg viewBox="0 0 20 20" aria-hidden="true"><path d={v.icon} /></svg>
              <span>{v.label}</span>
            </a>
          </li>
        ))}
      </ul>
      <div class="foot">
        <ThemeSwitch />
        {me.value && !me.value.open && <button type="button" class="plain" onClick={() => void logOut()}>Log out {me.value.name}</button>}
        <p class="quiet version">{me.value?.version}</p>
      </div>
    </nav>
  );
}

const Mark = (): JSX.Element => (
  <svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M12 3v14M12 21a8 8 0 0 1-8-8l3 2M12 21a8 8 0 0 0 8-8l-3 2M9 5.5a3 3 0 1 1 6 0" /></svg>
);

function ThemeSwitch(): JSX.Element {
  return (
    <label class="theme">
      <span class="quiet">Theme</span>
      <select value={theme.value} onChange={(e) => setTheme(e.currentTarget.value as Theme)}>
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Login(): JSX.Element {
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []); // browsers heed autofocus only when they load a page
  const asking = useRef(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (asking.current) return;
    asking.current = true;
    logIn({ token }).then(setError, () => setError("The gateway does not answer.")).finally(() => (asking.current = false));
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1><Mark /> Grapnel</h1>
        <label for="token">Token</label>
        <input id="token" ref={field} type="password" autocomplete="off" value={token} required onInput={(e) => setToken(e.currentTarget.value)} />
        <button type="submit" class="primary">Log in</button>
        <Problem error={error} />
        <p class="quiet">A token of the gateway's token file. <code>grapnel serve --open</code> logs in by itself.</p>
      </form>
    </main>
  );
}

function Page(): JSX.Element {
  if (me.value === undefined) return <main class="login"><Busy what="Connecting" /></main>;
  return me.value === null ? <Login /> : <Frame />;
}

apply();
if (route.value.path[0] === "documents") loadDocuments().catch(() => undefined); // while the connection comes about
render(<Page />, document.body);
