// Addresses: every view has one, and the browser's history works.
import { signal } from "@preact/signals";

export interface Route {
  /** The path's segments, decoded. */
  path: string[];
  query: URLSearchParams;
}

/** A segment decoded; one that is not encoded UTF-8 as it is, for no view has it. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const read = (): Route => ({
  path: location.pathname.split("/").filter(Boolean).map(decoded),
  query: new URLSearchParams(location.search),
});

export const route = signal<Route>(read());

/** Makes an address of segments and of parameters; those that are undefined or empty are left out. */
export function address(segments: string[], query: Record<string, string | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) q.set(name, value);
  const tail = q.toString();
  return "/" + segments.map(encodeURIComponent).join("/") + (tail ? "?" + tail : "");
}

export function navigate(to: string, replace = false): void {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  const moved = route.value.path.join("/") !== read().path.join("/");
  route.value = read();
  if (!replace && moved) scrollTo(0, 0);
}

addEventListener("popstate", () => (route.value = read()));

// Links within the page need no other code.
addEventListener("click", (event) => {
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
});
