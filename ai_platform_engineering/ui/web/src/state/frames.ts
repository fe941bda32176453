// Applies changes once for each frame of the display, so that many events cause one rendering.

import { batch } from "@preact/signals";

/** Hidden pages get no frames. */
const HIDDEN_DELAY = 100;

export class Frames {
  private waiting: (() => void)[] = [];
  private isScheduled = false;

  constructor(private readonly schedule: (flush: () => void) => void = onNextFrame) {}

  /** Run `change` with the next frame, after the changes before it. */
  add(change: () => void): void {
    this.waiting.push(change);
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.schedule(() => this.flush());
  }

  /** Run all changes now. */
  flush(): void {
    this.isScheduled = false;
    const changes = this.waiting;
    this.waiting = [];
    batch(() => {
      for (const change of changes) change();
    });
  }
}

/** A page may become hidden before its frame comes: then the timer is first. */
function onNextFrame(flush: () => void): void {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    flush();
  };
  if (!document.hidden) requestAnimationFrame(once);
  setTimeout(once, HIDDEN_DELAY);
}
