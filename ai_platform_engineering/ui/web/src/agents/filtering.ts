// Finds agents and tools by the words in their names and descriptions.

import type { AgentRow, ToolRow } from "../api";

export interface FoundAgent {
  agent: AgentRow;
  tools: readonly ToolRow[];
  /** Whether the agent was found by its tools, which should then be shown. */
  byTools: boolean;
}

/**
 * The agents that match every word of `text` by their name, else by their tools, else by their description. An agent that
 * was found by its tools has only the matching ones.
 */
export function findAgents(agents: readonly AgentRow[], text: string): FoundAgent[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return agents.flatMap((agent): FoundAgent[] => {
    const whole: FoundAgent = { agent, tools: agent.tools, byTools: false };
    const names = [agent.name, agent.title];
    if (containsAll(words, names)) return [whole];
    const tools = agent.tools.filter((tool) =>
      containsAll(words, [...names, tool.name, tool.name.replaceAll("_", " "), tool.description]),
    );
    if (tools.length > 0) return [{ agent, tools, byTools: true }];
    return containsAll(words, [...names, agent.description]) ? [whole] : [];
  });
}

function containsAll(words: readonly string[], texts: readonly string[]): boolean {
  const searched = texts.join("\n").toLowerCase();
  return words.every((word) => searched.includes(word));
}
