// The editor's bundle, which lies beside the others.
import type * as Bundle from "./editor";

export const loadEditor = (): Promise<typeof Bundle> => import(new URL("editor.js", import.meta.url).href) as Promise<typeof Bundle>;
