// Where the bars and ticks of a timeline are. Values only: positions are percentages of the run.

import type { AgentView, CallState, RunView, ToolView } from "../view";

export const MAX_ROWS = 60;
const MAX_TICKS = 5;
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400];
const MIN_WIDTH = 0.7;

export interface Row {
  callId: string;
  call: AgentView | ToolView;
  /** 1: the call was made within the one above. */
  depth: 0 | 1;
  state: CallState;
  /** Seconds since the start of the run; a call that is not over ends now. */
  start: number;
  end: number;
  x: number;
  width: number;
}

export interface TimelineLayout {
  rows: readonly Row[];
  /** Calls that are not in `rows`. */
  hidden: number;
  duration: number;
  ticks: readonly { at: number; x: number }[];
}

export function layoutOf(run: RunView, maxRows = MAX_ROWS): TimelineLayout {
  const calls = run.calls.flatMap((call) => [
    { call, depth: 0 as const },
    ...(call.kind === "agent" ? call.tools.map((tool) => ({ call: tool, depth: 1 as const })) : []),
  ]);
  const duration = Math.max(0.1, run.elapsed, ...calls.map(({ call }) => call.endedAt ?? call.startedAt));
  const rows = calls.slice(0, maxRows).map(({ call, depth }) => {
    const start = Math.min(Math.max(0, call.startedAt), duration);
    const end = Math.max(start, call.endedAt ?? Math.max(run.elapsed, start));
    const width = Math.max(MIN_WIDTH, percent(end - start, duration));
    const x = Math.min(percent(start, duration), 100 - width);
    return { callId: call.callId, call, depth, state: call.state, start, end, x, width };
  });
  return { rows, hidden: calls.length - rows.length, duration, ticks: ticksOf(duration) };
}

/** Agents of the picture that worked at the same time as another one, in order of their start. */
export function parallelAgents(run: RunView): readonly string[] {
  const agents = run.calls.filter((call) => call.kind === "agent");
  const overlapping = agents.filter((one) =>
    agents.some(
      (other) =>
        other !== one &&
        one.startedAt < (other.endedAt ?? run.elapsed) &&
        other.startedAt < (one.endedAt ?? run.elapsed),
    ),
  );
  return [...new Set(overlapping.map((call) => call.agent))];
}

function ticksOf(duration: number): { at: number; x: number }[] {
  const step = STEPS.find((one) => duration / one <= MAX_TICKS) ?? Math.ceil(duration / MAX_TICKS / 86_400) * 86_400;
  const count = Math.floor(duration / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => {
    const at = Number((index * step).toFixed(1));
    return { at, x: percent(at, duration) };
  });
}

function percent(part: number, whole: number): number {
  return Number(((100 * part) / whole).toFixed(2));
}
