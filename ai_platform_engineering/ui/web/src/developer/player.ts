// Plays a recording: a clock over `Playback`, as signals.

import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";

import type { RecordedLine } from "../events";
import { Playback, type PlayedTurn } from "./playback";

export const SPEEDS = [0.5, 1, 2, 4, 8, 16] as const;

export class Player {
  readonly playing = signal(false);
  readonly speed = signal<number>(1);
  /** Seconds since the start of the recording. */
  readonly position = signal(0);
  readonly turns: ReadonlySignal<readonly PlayedTurn[]>;
  readonly duration: number;
  readonly #count: ReadonlySignal<number>;
  #frame = 0;
  #lastTime = 0;

  constructor(lines: readonly RecordedLine[]) {
    const playback = new Playback(lines);
    this.duration = playback.duration;
    this.#count = computed(() => playback.countAt(this.position.value));
    this.turns = computed(() => playback.turnsAfter(this.#count.value));
  }

  play(): void {
    if (this.playing.value) return;
    batch(() => {
      if (this.position.value >= this.duration) this.position.value = 0;
      this.playing.value = true;
    });
    this.#lastTime = performance.now();
    this.#frame = requestAnimationFrame(this.#tick);
  }

  pause(): void {
    cancelAnimationFrame(this.#frame);
    this.playing.value = false;
  }

  seek(seconds: number): void {
    this.position.value = Math.min(Math.max(seconds, 0), this.duration);
  }

  /** Everything at once. */
  finish(): void {
    this.pause();
    this.seek(this.duration);
  }

  readonly #tick = (now: number): void => {
    this.seek(this.position.value + (Math.max(0, now - this.#lastTime) / 1000) * this.speed.value);
    this.#lastTime = now;
    if (this.position.value >= this.duration) this.playing.value = false;
    else this.#frame = requestAnimationFrame(this.#tick);
  };
}
