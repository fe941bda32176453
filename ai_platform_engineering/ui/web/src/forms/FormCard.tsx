import type { Form } from "../events";
import type { Store, Turn } from "../store";

export function FormCard({ form }: { store: Store; turn: Turn; form: Form }) {
  return <p>{form.title}</p>;
}
