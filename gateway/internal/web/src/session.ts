// Who is using the page, and what they may do.
import { signal } from "@preact/signals";
import { call, connect, disconnect, online, whenOnline, type Result } from "./rpc";
import { store, stored } from "./stored";

export type Right = "read" | "write" | "compile" | "dispatch" | "admin";

/** Undefined until the gateway has answered; null while nobody is logged in. */
export const me = signal<Result<"whoami"> | null | undefined>(undefined);

/** What may is asked before the gateway has answered: nothing. */
export function may(right: Right): boolean {
  return me.value?.open === true || (me.value?.rights ?? []).includes(right);
}

/** The name of who is logged in; empty for nobody, and on a gateway without tokens. */
export const who = (): string => me.value?.name ?? "";

const halfKey = "grapnel.session";
const whoKey = "grapnel.whoami";
const header = "Grapnel-Page";

const kept = (): string => localStorage.getItem(halfKey) ?? "";

/** Who the gateway last said that the kept session is, so that views need not wait for it to say so again. */
function remembered(): Result<"whoami"> | undefined {
  const last = stored<{ half?: string; who?: Result<"whoami"> }>(localStorage, whoKey, {});
  return last.half === kept() ? last.who : undefined;
}

function told(half: string, who: Result<"whoami">): void {
  if (JSON.stringify(who) !== JSON.stringify(me.value)) me.value = who;
  store(localStorage, whoKey, { half, who });
}

function ask(method: string, body?: object): Promise<Response> {
  const headers: Record<string, string> = { [header]: kept() || "new" };
  if (body) headers["Content-Type"] = "application/json";
  return fetch("/session", { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
}

async function loggedIn(): Promise<boolean> {
  const answer = await ask("GET");
  return answer.ok && !((await answer.json()) as { log_in: boolean }).log_in;
}

/** Logs in with the code of the address if there is one, else with the session that is kept. */
export async function start(): Promise<void> {
  const code = /^#login=(\w+)$/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, "", location.pathname + location.search);
  if (code && (await logIn({ code }).catch(() => "the gateway did not answer")) === "") return;
  await resume();
}

async function resume(): Promise<void> {
  if (kept() !== "" || remembered()) return enter(); // a session that has ended is refused, and then asked for
  try {
    if (await loggedIn()) enter();
    else me.value = null;
  } catch {
    setTimeout(() => void resume(), 1000); // the gateway is not there yet
  }
}

/** Logs in; the result is what is wrong, empty for nothing. */
export async function logIn(secret: { token: string } | { code: string }): Promise<string> {
  const answer = await ask("POST", secret);
  const body = (await answer.json()) as { half?: string; error?: { message: string } };
  if (!answer.ok) return body.error?.message ?? answer.statusText;
  localStorage.setItem(halfKey, body.half ?? "");
  enter();
  return "";
}

export async function logOut(): Promise<void> {
  leave();
  disconnect();
  await ask("DELETE").catch(() => undefined);
  localStorage.removeItem(halfKey);
  logInAgain();
}

let leave = (): void => {};

function logInAgain(): void {
  leave();
  disconnect();
  localStorage.removeItem(whoKey);
  me.value = null;
}

function enter(): void {
  leave();
  disconnect();
  me.value = remembered();
  const half = kept();
  let here = true;
  const deaf = whenOnline(() => {
    call("whoami", {}).then((v) => here && told(half, v), () => undefined); // the next connection asks again
  });
  leave = (): void => {
    here = false;
    deaf();
  };
  // A gateway that has started again knows no sessions; another tab may have logged out, or in as somebody else.
  connect(half, () => {
    loggedIn().then((still) => {
      if (!here || online.value || (still && half === kept())) return;
      if (still) enter();
      else logInAgain();
    }, () => undefined);
  });
}
