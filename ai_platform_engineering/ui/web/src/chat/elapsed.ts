// The time that a run takes, which grows between its events, too.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Turn } from "../store";
import { isRunning } from "./turns";

const TICK = 1000;

/** The seconds of the run so far, counted up once a second while the page follows it. */
export function useElapsed(turn: Turn): number {
  const run = turn.run.value;
  const grows = isRunning(turn) && turn.connection.value === "live";
  const last = useRef({ run, at: performance.now() });
  if (last.current.run !== run) last.current = { run, at: performance.now() };
  const ticks = useSignal(0);
  // Read, so that the component is rendered again with each tick.
  void ticks.value;
  useEffect(() => {
    if (!grows) return;
    const timer = setInterval(() => (ticks.value += 1), TICK);
    return () => clearInterval(timer);
  }, [grows]);
  return grows ? run.elapsed + (performance.now() - last.current.at) / 1000 : run.elapsed;
}
