// The last dispatches of this tab, to be sent again.
import { computed, signal } from "@preact/signals";
import type { Json } from "../schema";
import { who } from "../session";
import { store, stored } from "../stored";

export interface Sent {
  at: string;
  phase: string;
  context: { [name: string]: string };
  input: Json | undefined;
  outcome: string;
  /** Who sent it: the next one who logs in does not see it. */
  who: string;
}

const key = "grapnel.try";
const most = 12;

const all = signal(stored<Sent[]>(sessionStorage, key, []));

/** Those of who is logged in, the newest first. */
export const sent = computed(() => all.value.filter((s) => s.who === who()));

function replace(list: Sent[]): void {
  all.value = list;
  store(sessionStorage, key, list);
}

/** Puts a dispatch in front. One that does not fit into the storage is kept as long as the page. */
export const remember = (s: Omit<Sent, "who">): void => replace([{ ...s, who: who() }, ...all.value].slice(0, most));

export const forgetSent = (): void => replace(all.value.filter((s) => s.who !== who()));
