// A picture of a run: who worked when, and what ran in parallel. The table says the same for screen readers.

import { agentName } from "../chat/names";
import { clean } from "../markdown/clean_text";
import { TEXTS } from "../texts";
import type { AgentView, RunView, ToolView } from "../view";
import { layoutOf, parallelAgents, type Row, type TimelineLayout } from "./layout";

const AXIS = 22;
const ROW = 28;
const LABEL_BASELINE = 13;
const BAR_TOP = 17;
const MAX_LABEL = 22;
const MAX_SPOKEN = 8;

export function Timeline({ run }: { run: RunView }) {
  if (run.calls.length === 0) return null;
  const layout = layoutOf(run);
  const height = AXIS + layout.rows.length * ROW + 4;
  return (
    <section class="timeline" aria-label={TEXTS.timeline.title}>
      <h3 class="timeline-title">{TEXTS.timeline.title}</h3>
      <svg class="timeline-picture" width="100%" height={height} role="img" aria-label={spoken(run, layout)}>
        <Axis layout={layout} height={height} />
        {layout.rows.map((row, index) => (
          <Bar key={row.callId} row={row} y={AXIS + index * ROW} />
        ))}
      </svg>
      {layout.hidden > 0 && <p class="soft">{TEXTS.timeline.hidden(layout.hidden)}</p>}
      {/* A table is as wide as its cells, so the class is on an element around it. */}
      <div class="visually-hidden"><CallTable layout={layout} /></div>
    </section>
  );
}

function Axis({ layout, height }: { layout: TimelineLayout; height: number }) {
  return (
    <g class="axis">
      {layout.ticks.map(({ at, x }) => (
        <g key={at}>
          <line x1={`${x}%`} x2={`${x}%`} y1={AXIS - 6} y2={height} />
          <text x={`${x}%`} y={AXIS - 9} text-anchor={x < 5 ? "start" : x > 90 ? "end" : "middle"}>
            {TEXTS.timeline.time(at)}
          </text>
        </g>
      ))}
    </g>
  );
}

function Bar({ row, y }: { row: Row; y: number }) {
  // A label starts where its bar does, unless it would leave the picture.
  const atEnd = row.x > 50;
  return (
    <g class={row.depth === 0 ? "row" : "row inner"}>
      <text
        x={`${atEnd ? row.x + row.width : row.x}%`}
        y={y + LABEL_BASELINE}
        text-anchor={atEnd ? "end" : "start"}
        class="label"
      >
        {shortLabel(row)}
      </text>
      <rect
        class={`bar ${row.state}`}
        x={`${row.x}%`}
        y={y + BAR_TOP}
        width={`${row.width}%`}
        height={row.depth === 0 ? 8 : 5}
        rx={row.depth === 0 ? 4 : 2.5}
      />
    </g>
  );
}

function CallTable({ layout }: { layout: TimelineLayout }) {
  return (
    <table>
      <caption>{TEXTS.timeline.title}</caption>
      <thead>
        <tr>
          {TEXTS.timeline.columns.map((column) => (
            <th key={column} scope="col">{column}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {layout.rows.map((row) => (
          <tr key={row.callId}>
            <th scope="row">{nameOf(row.call)}</th>
            <td>{agentName(row.call.agent)}</td>
            <td>{TEXTS.run.call[row.state]}</td>
            <td>{TEXTS.run.duration(row.start)}</td>
            <td>{TEXTS.run.duration(row.end - row.start)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function spoken(run: RunView, layout: TimelineLayout): string {
  const agents = layout.rows.filter((row) => row.depth === 0);
  const sentences = agents
    .slice(0, MAX_SPOKEN)
    .map((row) => TEXTS.timeline.row(nameOf(row.call), row.start, row.end, TEXTS.run.call[row.state]));
  if (agents.length > MAX_SPOKEN) sentences.push(TEXTS.timeline.more(agents.length - MAX_SPOKEN));
  const parallel = parallelAgents(run).map(agentName);
  if (parallel.length === 1) sentences.push(TEXTS.timeline.parallelCalls(parallel[0] ?? ""));
  if (parallel.length > 1) sentences.push(TEXTS.timeline.parallel(parallel));
  return [TEXTS.timeline.summary(layout.duration), ...sentences].join(" ");
}

function nameOf(call: AgentView | ToolView): string {
  return call.kind === "agent" ? agentName(call.agent) : clean(call.tool);
}

function shortLabel({ call, state, start, end }: Row): string {
  const name = nameOf(call);
  const short = name.length > MAX_LABEL ? `${name.slice(0, MAX_LABEL - 1)}…` : name;
  const time = TEXTS.run.duration(end - start);
  return state === "completed" ? `${short} · ${time}` : `${short} · ${TEXTS.run.call[state]} · ${time}`;
}
