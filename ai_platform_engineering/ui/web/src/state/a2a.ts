// The supervisor's A2A endpoint: messages, streams of updates, cancellation.

import { JsonRpcTransportFactory, type Transport } from "@a2a-js/sdk/client";
import type { AgentCard, Message, Part, StreamResponse } from "@a2a-js/sdk";

import { rejectionOf, type Http } from "./http";

const USER_ROLE = 1;
const VERSION = { "A2A-Version": "1.0" };

/** The part of a message that differs between questions and answers. */
export interface Outgoing {
  messageId: string;
  contextId: string;
  taskId?: string;
  text?: string;
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

/** What a follower needs of the supervisor. */
export interface Supervisor {
  send(message: Outgoing, signal: AbortSignal): AsyncIterable<StreamResponse>;
  /** The task as it was after the update `lastSeq`, then the later updates. */
  subscribe(taskId: string, lastSeq: number, signal: AbortSignal): AsyncIterable<StreamResponse>;
  cancel(taskId: string): Promise<void>;
}

/**
 * The supervisor at `address`. Its agent card is not fetched: it has the supervisor's own address, but the page must use
 * the one at which the browser has found it.
 */
export class A2ASupervisor implements Supervisor {
  private readonly transport: Promise<Transport>;

  constructor(http: Http, address: string) {
    const fetchImpl: typeof fetch = async (input, init) => {
      const response = await http.fetch(input, init);
      // A JSON-RPC error has a code and details, which the SDK reads.
      if (!response.ok && !(await isJsonRpc(response))) throw await rejectionOf(response);
      return response;
    };
    this.transport = new JsonRpcTransportFactory({ fetchImpl }).create(address, {} as AgentCard);
  }

  async *send(message: Outgoing, signal: AbortSignal): AsyncIterable<StreamResponse> {
    const transport = await this.transport;
    yield* transport.sendMessageStream(
      { tenant: "", message: messageOf(message), configuration: undefined, metadata: undefined },
      { signal, serviceParameters: VERSION },
    );
  }

  async *subscribe(taskId: string, lastSeq: number, signal: AbortSignal): AsyncIterable<StreamResponse> {
    const transport = await this.transport;
    const serviceParameters = { ...VERSION, "Last-Event-ID": String(lastSeq) };
    yield* transport.resubscribeTask({ tenant: "", id: taskId }, { signal, serviceParameters });
  }

  async cancel(taskId: string): Promise<void> {
    const transport = await this.transport;
    await transport.cancelTask({ tenant: "", id: taskId, metadata: undefined }, { serviceParameters: VERSION });
  }
}

async function isJsonRpc(response: Response): Promise<boolean> {
  try {
    const body: unknown = await response.clone().json();
    return typeof body === "object" && body !== null && "jsonrpc" in body;
  } catch {
    return false;
  }
}

function messageOf(message: Outgoing): Message {
  const parts: Part[] = [];
  if (message.text !== undefined) parts.push(part({ $case: "text", value: message.text }));
  if (message.data !== undefined) parts.push(part({ $case: "data", value: message.data }));
  return {
    messageId: message.messageId,
    contextId: message.contextId,
    taskId: message.taskId ?? "",
    role: USER_ROLE,
    parts,
    metadata: message.metadata,
    extensions: [],
    referenceTaskIds: [],
  };
}

function part(content: NonNullable<Part["content"]>): Part {
  return { content, metadata: undefined, filename: "", mediaType: "" };
}
