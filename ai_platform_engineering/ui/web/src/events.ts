// The events of a run, with the names and fields of recordings (events_json.py). Fields with default values may be
// missing.

export const SUPERVISOR = "supervisor";

export type StepStatus = "pending" | "in_progress" | "completed" | "failed";
export type FieldType = "text" | "multiline" | "number" | "boolean" | "select" | "multiselect" | "url" | "email";

export interface PlanStep {
  id: string;
  title: string;
  status: StepStatus;
  order: number;
  agent?: string | null;
}

export interface PlanUpdated {
  event: "plan_updated";
  steps: PlanStep[];
  title?: string;
}

interface CallOfRun {
  agent: string;
  call_id: string;
  parent_call_id?: string | null;
  plan_step_id?: string | null;
}

interface CallEnd {
  ok: boolean;
  reason?: string | null;
}

interface ToolOfRun extends CallOfRun {
  tool: string;
  skill?: string | null;
}

export type AgentStarted = CallOfRun & { event: "agent_started" };
export type AgentFinished = CallOfRun & CallEnd & { event: "agent_finished" };
export type ToolStarted = ToolOfRun & { event: "tool_started" };
export type ToolFinished = ToolOfRun & CallEnd & { event: "tool_finished" };

export interface TextDelta {
  event: "text_delta";
  agent: string;
  message_id: string;
  text: string;
  parent_call_id?: string | null;
  /** The message that a crash cut off and that this one replaces. */
  supersedes?: string | null;
}

export interface MessageEnded {
  event: "message_ended";
  agent: string;
  message_id: string;
  parent_call_id?: string | null;
}

export interface FieldRules {
  minimum?: number | null;
  maximum?: number | null;
  integer?: boolean;
  min_length?: number | null;
  max_length?: number | null;
  pattern?: string | null;
}

export type FieldValue = string | number | boolean | string[] | null;

export interface FormField {
  field_name: string;
  field_type?: FieldType;
  field_description?: string;
  field_values?: string[] | null;
  default_value?: FieldValue;
  required?: boolean;
  /** The entered or proposed value. */
  value?: FieldValue;
  rules?: FieldRules | null;
  /** Why the value was rejected. */
  error?: string | null;
}

/** A tool call that waits for approval; `args` are its arguments. */
export interface ActionRequest {
  name?: string;
  args?: Record<string, unknown>;
  description?: string;
  [key: string]: unknown;
}

export interface Form {
  form_id: string;
  title: string;
  fields?: FormField[];
  description?: string;
  response?: string;
  agent?: string | null;
  action_requests?: ActionRequest[];
}

export interface InputRequired {
  event: "input_required";
  forms: Form[];
}

export interface FinalResult {
  event: "final_result";
  text: string;
  answer_message_id: string;
  limit?: string | null;
  /** A sentence for a person whose budget is nearly used up. */
  budget_warning?: string | null;
}

export interface Failed {
  event: "failed";
  code: string;
  message: string;
  partial?: string | null;
}

export interface Canceled {
  event: "canceled";
  by?: string;
  message?: string;
}

export type Ending = InputRequired | FinalResult | Failed | Canceled;

export type RunEvent =
  | PlanUpdated
  | AgentStarted
  | AgentFinished
  | ToolStarted
  | ToolFinished
  | TextDelta
  | MessageEnded
  | Ending;

/** A question. In a recording it comes before the events of its run. */
export interface Asked {
  event: "asked";
  question: string;
  context_id?: string;
}

/** One line of a recording. `at` is in seconds since its start; `seq` is the number in the supervisor's log. */
export type RecordedLine = (RunEvent | Asked) & { at?: number; seq?: number };
