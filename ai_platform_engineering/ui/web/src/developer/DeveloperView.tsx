import type { Turn } from "../store";

export function DeveloperView({ turn }: { turn: Turn }) {
  return <p>{String(turn)}</p>;
}
