// Requests to the supervisor: the header against forged requests, errors as sentences, and whether it can be reached.

import { signal } from "@preact/signals";

import { TEXTS } from "../texts";

export const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const NO_CONTENT = 204;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;
/** The code of JSON-RPC. */
const INTERNAL_ERROR = -32603;
const CHANGING = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/** The supervisor rejected a request; `message` is a sentence for people. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** There was no response. */
export class UnreachableError extends Error {}

export class Http {
  /** Whether the last request got a response. */
  readonly online = signal(true);
  csrfToken: string | null = null;
  /** Called after a response with the status 401. */
  onUnauthorized: () => void = () => {};
  /** Called when the token belongs to an earlier session, because another tab has signed in. */
  renewToken: () => Promise<void> = () => Promise.resolve();

  /** A request to a resource; `path` is relative to the page. Resolves to the JSON of the response. */
  async json<Result>(method: string, path: string, body?: unknown): Promise<Result> {
    const response = await this.fetch(path, {
      method,
      headers: { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw await rejectionOf(response);
    return (response.status === NO_CONTENT ? null : await response.json()) as Result;
  }

  /** `fetch` that throws `UnreachableError` without a response, and `RequestError` for 401 and failures of servers. */
  readonly fetch = async (address: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const token = this.csrfToken;
    let response = await this.send(address, init);
    if (response.status === FORBIDDEN && (await isTokenRejected(response.clone()))) {
      await this.renewToken();
      if (this.csrfToken !== token) response = await this.send(address, init);
    }
    if (response.status === UNAUTHORIZED) {
      this.onUnauthorized();
      throw new RequestError(UNAUTHORIZED, TEXTS.app.notSignedIn);
    }
    if (response.status >= SERVER_ERROR) throw await rejectionOf(response);
    return response;
  };

  private async send(address: RequestInfo | URL, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.csrfToken !== null && CHANGING.has(init.method ?? "GET")) headers.set("X-CSRF-Token", this.csrfToken);
    try {
      const response = await fetch(address, { ...init, headers });
      this.online.value = true;
      return response;
    } catch (error) {
      if (init.signal?.aborted) throw error;
      this.online.value = false;
      throw new UnreachableError(TEXTS.app.disconnected, { cause: error });
    }
  }
}

async function isTokenRejected(response: Response): Promise<boolean> {
  const body = (await response.json().catch(() => null)) as { error?: unknown } | null;
  return body?.error === "csrf";
}

export async function rejectionOf(response: Response): Promise<RequestError> {
  return new RequestError(response.status, await sentenceOf(response));
}

/** Why a request failed, for people. */
export function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause;
  return cause instanceof Error && !(error instanceof UnreachableError) ? problemOf(cause) : error.message;
}

/**
 * Whether another attempt may succeed: the connection or the server failed, not the request. `isAccepted`: the attempt
 * only reads the events of a task that exists.
 */
export function isTemporary(error: unknown, isAccepted: boolean): boolean {
  if (error instanceof RequestError) {
    const { status } = error;
    return status >= SERVER_ERROR || status === TOO_MANY_REQUESTS || (status === UNAUTHORIZED && isAccepted);
  }
  const rejection = rejectionIn(error);
  if (rejection === null) return true;
  return isServerStopping(rejection.data) || (isAccepted && rejection.envelopeCode === INTERNAL_ERROR);
}

interface Rejection {
  envelopeCode: number;
  data?: unknown;
}

/** The JSON-RPC error in `error`. The SDK wraps an error that came in a stream. */
function rejectionIn(error: unknown): Rejection | null {
  for (let one = error; one instanceof Error; one = one.cause) {
    if ("envelopeCode" in one && typeof one.envelopeCode === "number") return one as Error & Rejection;
  }
  return null;
}

/** A message that came while the supervisor was stopping is accepted after its restart. */
function isServerStopping(data: unknown): boolean {
  const details: unknown[] = Array.isArray(data) ? data : [data];
  return details.some((detail) => (detail as { metadata?: { server?: unknown } } | null)?.metadata?.server === "stopping");
}

async function sentenceOf(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    if (typeof body === "object" && body !== null) {
      const { message, detail, error } = body as Record<string, unknown>;
      for (const sentence of [message, detail, error]) {
        if (typeof sentence === "string" && sentence) return sentence;
        const inner = (sentence as { message?: unknown } | null | undefined)?.message;
        if (typeof inner === "string" && inner) return inner;
      }
    }
  } catch {
    // The body is not JSON.
  }
  return TEXTS.app.requestFailed(response.status);
}
