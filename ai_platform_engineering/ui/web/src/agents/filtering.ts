// Finds agents and tools by the words in their names and descriptions.

import type { AgentRow, ToolRow } from "../api";

export interface FoundAgent {
  agent: AgentRow;
  tools: readonly ToolRow[];
  /** Whether the agent was found by its tools, which should then be shown. */
  byTools: boolean;
}

/** The agents that contain every word of `text`; an agent that was found by its tools has only the matching ones. */
export function findAgents(agents: readonly AgentRow[], text: string): FoundAgent[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return agents.flatMap((agent): FoundAgent[] => {
    if (containsAll(words, [agent.name, agent.title, agent.description])) {
      return [{ agent, tools: agent.tools, byTools: false }];
    }
    const tools = agent.tools.filter((tool) =>
      containsAll(words, [agent.name, agent.title, tool.name, tool.name.replaceAll("_", " "), tool.description]),
    );
    return tools.length > 0 ? [{ agent, tools, byTools: true }] : [];
  });
}

function containsAll(words: readonly string[], texts: readonly string[]): boolean {
  const searched = texts.join("\n").toLowerCase();
  return words.every((word) => searched.includes(word));
}
