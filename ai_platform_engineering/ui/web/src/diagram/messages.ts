// Messages between the page and the frame that draws a diagram. The frame has an origin of its own, so neither side
// trusts the other: each checks the sender, the shape and the sizes.

export const MAX_SOURCE = 20_000;
const MIN_HEIGHT = 40;
const MAX_HEIGHT = 3000;

/** To the frame. */
export interface Draw {
  source: string;
  dark: boolean;
}

/** From the frame. */
export type Report = { state: "ready" } | { state: "drawn"; height: number } | { state: "failed" };

export function asDraw(data: unknown): Draw | null {
  const { source, dark } = fields(data);
  if (typeof source !== "string" || source.length > MAX_SOURCE || typeof dark !== "boolean") return null;
  return { source, dark };
}

export function asReport(data: unknown): Report | null {
  const { state, height } = fields(data);
  if (state === "ready" || state === "failed") return { state };
  if (state !== "drawn" || typeof height !== "number" || !Number.isFinite(height)) return null;
  return { state, height: Math.round(Math.min(MAX_HEIGHT, Math.max(MIN_HEIGHT, height))) };
}

function fields(data: unknown): Record<string, unknown> {
  return typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
}
