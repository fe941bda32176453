import type { Turn } from "../store";

export function Feedback({ turn }: { turn: Turn }) {
  return <p>{String(turn)}</p>;
}
