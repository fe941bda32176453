// One agent: what it does, where it runs, whether it works, what its real backend still needs, and its tools.

import type { AgentRow, ToolRow } from "../api";
import { askInNewConversation } from "../controls/asking";
import { Fold } from "../controls/Fold";
import { SettingLines } from "../controls/SettingLines";
import { clean } from "../markdown/clean_text";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import type { FoundAgent } from "./filtering";

export function AgentCard({ store, found }: { store: Store; found: FoundAgent }) {
  const { agent } = found;
  return (
    <li class="card entry">
      <h4 class="entry-title">
        {agent.title} <Badges agent={agent} />
      </h4>
      <p>{clean(agent.description)}</p>
      {agent.problem && <p class="problem">{clean(agent.problem)}</p>}
      <p class="soft entry-note">{TEXTS.agents.why(agent.why)}</p>
      {agent.enabled && <Examples store={store} agent={agent} />}
      <Missing agent={agent} />
      {found.tools.length > 0 && (
        <Fold summary={TEXTS.agents.tools(found.tools.length, agent.tools.length)} open={found.byTools}>
          <ul class="tools">
            {found.tools.map((tool) => (
              <Tool key={tool.name} tool={tool} />
            ))}
          </ul>
        </Fold>
      )}
    </li>
  );
}

function Badges({ agent }: { agent: AgentRow }) {
  if (!agent.enabled) return <span class="badge off">{TEXTS.agents.off}</span>;
  return (
    <>
      {agent.placement && <span class="badge">{TEXTS.agents.placement[agent.placement]}</span>}{" "}
      <Reachability reachable={agent.reachable} />{" "}
      {/* Which backend a remote agent uses is known only to its own process. */}
      {agent.placement === "in-process" && (
        <span class={agent.sandbox ? "badge wait" : "badge good"}>
          {agent.sandbox ? TEXTS.agents.sandbox : TEXTS.agents.realBackend}
        </span>
      )}
    </>
  );
}

function Reachability({ reachable }: { reachable: boolean | null }) {
  if (reachable === null) return <span class="badge off">{TEXTS.agents.notChecked}</span>;
  return (
    <span class={reachable ? "badge good" : "badge bad"}>
      {reachable ? TEXTS.agents.reachable : TEXTS.agents.unreachable}
    </span>
  );
}

function Examples({ store, agent }: { store: Store; agent: AgentRow }) {
  if (agent.examples.length === 0) return null;
  return (
    <ul class="examples" aria-label={TEXTS.agents.examples(agent.title)}>
      {agent.examples.map((question) => (
        <li key={question}>
          <button type="button" class="button small example" onClick={() => askInNewConversation(store, question)}>
            {question}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Missing({ agent }: { agent: AgentRow }) {
  if (agent.missing.length === 0) return null;
  return (
    <Fold summary={TEXTS.agents.missing(agent.missing.length)}>
      <div class="fold-body">
        <dl class="settings">
          {agent.missing.map(({ setting, description }) => (
            <div key={setting}>
              <dt><code>{setting}</code></dt>
              <dd>{description}</dd>
            </div>
          ))}
        </dl>
        <p>{TEXTS.agents.setLines}</p>
        <SettingLines
          lines={agent.missing.map(({ setting }) => `${setting}=`)}
          label={TEXTS.agents.settingsOf(agent.title)}
        />
      </div>
    </Fold>
  );
}

function Tool({ tool }: { tool: ToolRow }) {
  const effect = tool.destructive ? "destructive" : tool.read_only ? "readOnly" : "changes";
  const style = { destructive: "badge bad", changes: "badge wait", readOnly: "badge off" }[effect];
  return (
    <li>
      <code class="tool-name">{clean(tool.name)}</code> <span class={style}>{TEXTS.agents.effects[effect]}</span>
      {tool.description && <p class="soft tool-description">{clean(tool.description)}</p>}
    </li>
  );
}
