import type { Turn } from "../store";

export function Decisions({ turn }: { turn: Turn }) {
  return <p>{String(turn)}</p>;
}
