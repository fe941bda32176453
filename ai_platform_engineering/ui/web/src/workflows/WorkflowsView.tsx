// The workflows, with their steps and inputs. A workflow that can be started brings its form in a new conversation.

import { agentName } from "../chat/names";
import { askInNewConversation } from "../controls/asking";
import { Fold } from "../controls/Fold";
import { LoadStatus, useLoaded } from "../controls/loading";
import { ViewHeader } from "../controls/ViewHeader";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { loadWorkflows, type WorkflowInput, type WorkflowRow, type WorkflowStep } from "./requests";

export function WorkflowsView({ store }: { store: Store }) {
  const loaded = useLoaded(() => loadWorkflows(store), []);
  return (
    <section class="view">
      <ViewHeader title={TEXTS.workflows.title} hint={TEXTS.workflows.hint} />
      <LoadStatus loaded={loaded} />
      {loaded.value?.length === 0 && <p>{TEXTS.workflows.none}</p>}
      <ul class="entries">
        {loaded.value?.map((workflow) => (
          <WorkflowCard key={workflow.name} store={store} workflow={workflow} />
        ))}
      </ul>
    </section>
  );
}

function WorkflowCard({ store, workflow }: { store: Store; workflow: WorkflowRow }) {
  return (
    <li class="card entry">
      <h3 class="entry-title">
        {workflow.title} {!workflow.ready && <span class="badge off">{TEXTS.workflows.off}</span>}
      </h3>
      <p>{workflow.description}</p>
      <p class="badges">
        {workflow.agents.map((agent) => (
          <span key={agent} class="badge">{agentName(agent)}</span>
        ))}
      </p>
      {workflow.reason !== null && <p class="problem">{TEXTS.workflows.reason(workflow.reason)}</p>}
      {workflow.ready && (
        <p>
          {/* A message with only the name or the title of a workflow starts it, without a model. */}
          <button type="button" class="button primary" onClick={() => askInNewConversation(store, workflow.title)}>
            {TEXTS.workflows.start(workflow.title)}
          </button>
        </p>
      )}
      <Fold summary={TEXTS.workflows.steps(workflow.steps.length)}>
        <ol class="steps">
          {workflow.steps.map((step) => (
            <Step key={step.title} step={step} />
          ))}
        </ol>
      </Fold>
      {workflow.inputs.length > 0 && (
        <Fold summary={TEXTS.workflows.inputs(workflow.inputs.length)}>
          <dl class="settings fold-body">
            {workflow.inputs.map((input) => (
              <Input key={input.name} input={input} />
            ))}
          </dl>
        </Fold>
      )}
      <p class="soft entry-note"><code>{workflow.name}</code></p>
    </li>
  );
}

function Step({ step }: { step: WorkflowStep }) {
  return (
    <li>
      <span class="badge">{agentName(step.agent)}</span> {step.title}
      {step.tool !== null && <> <code class="tool-name">{step.tool}</code></>}
      {step.when !== null && <span class="soft"> {TEXTS.workflows.when(withoutBraces(step.when))}</span>}
    </li>
  );
}

function Input({ input }: { input: WorkflowInput }) {
  return (
    <div>
      <dt>
        <code>{input.name}</code> <span class="soft">{needOf(input)}</span>
      </dt>
      <dd>
        {input.description}
        {input.options.length > 0 && <span class="soft"> {TEXTS.workflows.options(input.options.join(", "))}</span>}
      </dd>
    </div>
  );
}

function needOf(input: WorkflowInput): string {
  if (input.default !== null) return TEXTS.workflows.default(String(input.default));
  return input.required ? TEXTS.workflows.required : TEXTS.workflows.optional;
}

/** `{{ inputs.ticket }} is set` becomes `ticket is set`. */
function withoutBraces(condition: string): string {
  return condition.replace(/\{\{\s*(?:inputs|steps)\.([\w.]+)\s*\}\}/g, "$1");
}
