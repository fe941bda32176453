// The workflows of the supervisor: `GET /workflows`.

import type { FieldType, FieldValue } from "../events";
import type { Store } from "../store";

export interface WorkflowInput {
  name: string;
  type: FieldType;
  description: string;
  required: boolean;
  default: FieldValue;
  options: string[];
}

export interface WorkflowStep {
  title: string;
  agent: string;
  /** The tool that the agent calls; null if the agent follows an instruction. */
  tool: string | null;
  /** The condition under which the step runs; null: always. */
  when: string | null;
}

export interface WorkflowRow {
  name: string;
  title: string;
  description: string;
  agents: string[];
  ready: boolean;
  /** Why it cannot be started. */
  reason: string | null;
  inputs: WorkflowInput[];
  steps: WorkflowStep[];
}

export async function loadWorkflows(store: Store): Promise<WorkflowRow[]> {
  return (await store.request<{ workflows: WorkflowRow[] }>("GET", "workflows")).workflows;
}
