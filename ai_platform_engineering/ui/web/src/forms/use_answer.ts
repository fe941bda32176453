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

/** After this time, a person can send an accepted answer again, if the page did not learn that the run went on. */
const EFFECT_TIME = 10_000;
/** A form that comes back is shown with its errors within this time. */
const RETURN_TIME = 100;

export function useAnswer(store: Store, turn: Turn, form: Form): Answering {
  const state = useSignal<Answering["state"]>("idle");
  const problem = useSignal<string | null>(null);
  const card = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (state.peek() === "sent") state.value = "idle";
  }, [form]);
  useEffect(() => {
    if (state.value !== "sent") return;
    const timer = window.setTimeout(() => (state.value = "idle"), EFFECT_TIME);
    return () => window.clearTimeout(timer);
  }, [state.value]);
  const send = async (answer: FormAnswer) => {
    if (state.peek() !== "idle") return;
    state.value = "sending";
    problem.value = null;
    const sentence = await store.answer(turn, form, answer).catch(String);
    state.value = sentence === null ? "sent" : "idle";
    problem.value = sentence;
    if (sentence === null) keepFocus(card.current);
    else window.setTimeout(() => focusFirstError(card.current), RETURN_TIME);
  };
  return { card, state: state.value, problem: problem.value, send: (answer) => void send(answer) };
}

/** The card goes away with the focus in it: the keyboard stays in the conversation. */
function keepFocus(card: HTMLElement | null): void {
  const focused = document.activeElement;
  if (focused === document.body || card?.contains(focused)) document.getElementById("main")?.focus({ preventScroll: true });
}

export function focusFirstError(card: HTMLElement | null): void {
  card?.querySelector<HTMLElement>('[aria-invalid="true"], .field-group.invalid input')?.focus();
}
