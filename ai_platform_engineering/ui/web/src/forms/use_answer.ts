// Sends the answer to one form. Until the run goes on or the form comes back, the form takes no second answer.

import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Form } from "../events";
import type { FormAnswer, Store, Turn } from "../store";

export interface Answering {
  card: RefObject<HTMLElement | null>;
  state: "idle" | "sending" | "sent";
  /** Why the last answer was not accepted. */
  problem: string | null;
  send: (answer: FormAnswer) => void;
}

/** An accepted answer whose effect does not arrive, e.g. because the connection was lost, can be sent again then. */
const WAIT = 10_000;

const RETURN_TIME = 1_000;

/** The forms that this page has answered. Their cards may come back, with errors. */
const answered = new Set<string>();

export function useAnswer(store: Store, turn: Turn, form: Form): Answering {
  const state = useSignal<Answering["state"]>("idle");
  const problem = useSignal<string | null>(null);
  const card = useRef<HTMLElement | null>(null);
  useEffect(() => {
    state.value = "idle";
    if (answered.delete(form.form_id)) focusFirstError(card.current);
  }, [form]);
  useEffect(() => {
    if (state.value !== "sent") return;
    const timer = window.setTimeout(() => (state.value = "idle"), WAIT);
    return () => window.clearTimeout(timer);
  }, [state.value]);
  useEffect(() => () => {
    // The card goes away with the focus in it: keep the keyboard in the conversation.
    if (card.current?.contains(document.activeElement)) document.getElementById("main")?.focus({ preventScroll: true });
  }, []);
  const send = async (answer: FormAnswer) => {
    if (state.peek() !== "idle") return;
    state.value = "sending";
    problem.value = null;
    answered.add(form.form_id);
    const sentence = await store.answer(turn, form, answer).catch(String);
    problem.value = sentence;
    // The form comes back in the next frame, if at all.
    if (sentence !== null) window.setTimeout(() => answered.delete(form.form_id), RETURN_TIME);
    if (state.peek() === "sending") state.value = sentence === null ? "sent" : "idle";
  };
  return { card, state: state.value, problem: problem.value, send: (answer) => void send(answer) };
}

export function focusFirstError(card: HTMLElement | null): void {
  const invalid = card?.querySelector<HTMLElement>('[aria-invalid="true"], .field-group.invalid input');
  invalid?.focus();
}
