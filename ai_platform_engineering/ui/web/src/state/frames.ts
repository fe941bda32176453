// Applies changes once for each frame of the display, so that many events cause one rendering.

import { batch } from "@preact/signals";

/** Hidden pages get no frames. */
const HIDDEN_DELAY = 100;
/** More changes than this, such as a hundred calls that start at once, are spread over several frames. */
export const MAX_CHANGES = 32;
/** After a reconnect thousands of changes may wait: each frame applies at least this part of them. */
const MIN_PART = 1 / 8;

export class Frames {
  private waiting: (() => void)[] = [];
  private isScheduled = false;

  constructor(private readonly schedule: (apply: (isHidden: boolean) => void) => void = onNextFrame) {}

  /** Run `change` with one of the next frames, after the changes before it. */
  add(change: () => void): void {
    this.waiting.push(change);
    this.scheduleNext();
  }

  /** Run all changes now. */
  flush(): void {
    this.apply(this.waiting.length);
  }

  private scheduleNext(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.schedule((isHidden) => {
      this.isScheduled = false;
      const { length } = this.waiting;
      // A hidden page draws nothing.
      this.apply(isHidden ? length : Math.max(MAX_CHANGES, Math.ceil(length * MIN_PART)));
      if (this.waiting.length > 0) this.scheduleNext();
    });
  }

  private apply(count: number): void {
    const changes = this.waiting.splice(0, count);
    batch(() => {
      for (const change of changes) change();
    });
  }
}

/** A page may become hidden before its frame comes: then the timer is first. */
function onNextFrame(apply: (isHidden: boolean) => void): void {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    apply(document.hidden);
  };
  if (!document.hidden) requestAnimationFrame(once);
  setTimeout(once, HIDDEN_DELAY);
}
