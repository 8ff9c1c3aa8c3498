// A view that is loaded when it is first shown.
import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { Busy, Problem } from "./parts";

export function Later({ load, what }: { load: () => Promise<() => JSX.Element>; what: string }): JSX.Element {
  const [View, setView] = useState<() => JSX.Element>();
  const [error, setError] = useState<unknown>();
  const begin = (): void => {
    setError(undefined);
    load().then((view) => setView(() => view), setError);
  };
  useLayoutEffect(begin, []);
  if (View) return <View />;
  return error ? <Problem error={error} retry={begin} /> : <Busy what={"Loading " + what} />;
}
