// The events that came while the view was shown.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { call, whenOnline } from "../rpc";
import type { Notifications } from "../schema";
import { useNotification } from "../ui/use";

export type GatewayEvent = Notifications["event"];

export interface Row extends GatewayEvent {
  /** Counts the events of this view, from 1. */
  n: number;
}

const most = 5_000;
const drawTime = 200;

/** Watches while the view is shown. Events come in bunches: each would cost a drawing. While paused they wait. */
export function useEvents(paused: boolean): { rows: Row[]; waiting: number; error: unknown; clear(): void } {
  const seen = useRef<Row[]>([]);
  const queue = useRef<Row[]>([]);
  const total = useRef(0);
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const [error, setError] = useState<unknown>();
  const add = (e: GatewayEvent): void => {
    queue.current.push({ ...e, n: ++total.current });
    if (queue.current.length > most) queue.current.shift();
  };
  useNotification("event", add);
  useLayoutEffect(() => {
    const leave = whenOnline(() => void call("events/watch", {}).then((r) => {
      setError(undefined);
      if (total.current === 0) r.events.forEach(add); // after a reconnect they are here already
    }, setError));
    return () => {
      leave();
      call("events/unwatch", {}).catch(() => undefined);
    };
  }, []);
  useEffect(() => {
    const timer = setInterval(() => {
      if (queue.current.length === 0) return;
      if (!paused) {
        seen.current = [...queue.current.reverse(), ...seen.current].slice(0, most);
        queue.current = [];
      }
      draw(undefined);
    }, drawTime);
    return () => clearInterval(timer);
  }, [paused]);
  const clear = (): void => {
    seen.current = [];
    queue.current = [];
    draw(undefined);
  };
  return { rows: seen.current, waiting: queue.current.length, error, clear };
}
