// A recording as a sequence of turns, and its state after any number of lines. Pure; no clock.

import type { RecordedLine } from "../events";
import { reduce } from "../reducer";
import { EMPTY_RUN, type RunView } from "../view";

export interface PlayedTurn {
  question: string;
  /** Answers to the forms of the run. */
  replies: readonly string[];
  /** When the question was asked, in seconds since the start. */
  begun: number;
  run: RunView;
}

/** Seconds between two lines of a recording without times. */
const PACE = 0.15;
/** The states after every so many lines are kept: going back begins at one of them. */
const KEPT = 250;

export class Playback {
  /** When each line is due, in seconds since the start. Never decreases. */
  readonly times: readonly number[];
  readonly #kept: (readonly PlayedTurn[])[] = [[]];
  #count = 0;
  #turns: readonly PlayedTurn[] = [];

  constructor(readonly lines: readonly RecordedLine[]) {
    this.times = timesOf(lines);
  }

  get duration(): number {
    return this.times.at(-1) ?? 0;
  }

  /** How many lines are due at this time. */
  countAt(seconds: number): number {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.times[middle] ?? 0) <= seconds) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The turns after the first `count` lines. */
  turnsAfter(count: number): readonly PlayedTurn[] {
    if (count < this.#count) {
      const kept = Math.min(Math.floor(count / KEPT), this.#kept.length - 1);
      this.#count = kept * KEPT;
      this.#turns = this.#kept[kept] ?? [];
    }
    while (this.#count < count) {
      const line = this.lines[this.#count];
      if (line === undefined) break;
      this.#turns = after(this.#turns, line, this.times[this.#count] ?? 0);
      this.#count += 1;
      if (this.#count % KEPT === 0) this.#kept[this.#count / KEPT] = this.#turns;
    }
    return this.#turns;
  }
}

/** A question after an open form is its answer; any other begins a turn. */
function after(turns: readonly PlayedTurn[], line: RecordedLine, at: number): readonly PlayedTurn[] {
  const last = turns.at(-1);
  if (line.event === "asked") {
    if (last?.run.ending?.event === "input_required") {
      return [...turns.slice(0, -1), { ...last, replies: [...last.replies, line.question] }];
    }
    return [...turns, { question: line.question, replies: [], begun: at, run: EMPTY_RUN }];
  }
  const turn = last ?? { question: "", replies: [], begun: at, run: EMPTY_RUN };
  return [...turns.slice(0, -1), { ...turn, run: reduce(turn.run, line, at - turn.begun) }];
}

/** Lines without a time have that of the line before. The times of a later question may begin at 0 again. */
function timesOf(lines: readonly RecordedLine[]): number[] {
  const first = lines.find((line) => line.at !== undefined)?.at;
  if (first === undefined) return lines.map((_, place) => place * PACE);
  let start = first;
  let last = 0;
  return lines.map((line) => {
    if (line.at !== undefined) {
      if (line.event === "asked" && line.at - start < last) start = line.at - last;
      last = Math.max(last, line.at - start);
    }
    return last;
  });
}
