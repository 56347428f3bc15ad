import type { Random } from '../random.js';

/** A complete reply, or null when none came: the request may have been carried out or not. */
export type SoakReply = { status: number; headers: Headers; body: Record<string, unknown> } | null;

/** What all clients of a soak share. */
export interface SoakCaller {
  url(): string;
  keys: { secret: string; publishable: string };
  over(): boolean;
  /** What may never happen, in words. */
  violations: string[];
  /** Replies by `what status`, and `what cut` for requests without one. */
  counts: Map<string, number>;
  send(what: string, method: string, path: string, options?: SendOptions): Promise<SoakReply>;
}

export interface SendOptions {
  body?: object | FormData;
  headers?: Record<string, string>;
  publishable?: boolean;
  /** Statuses that may come; 503 always may. */
  allowed?: readonly number[];
}

/** No request may be left without an answer for longer: a process that is stuck is ended after thirty seconds. */
const HUNG_MS = 45_000;
const MAX_VIOLATIONS = 200;

/** Sends requests and keeps book of what came back: a reply that may not come, and silence, are violations. */
export function openCaller(url: () => string, keys: SoakCaller['keys'], over: () => boolean): SoakCaller {
  const counts = new Map<string, number>();
  const violations: string[] = [];
  const count = (label: string): void => void counts.set(label, (counts.get(label) ?? 0) + 1);
  const complain = (text: string): void => void (violations.length < MAX_VIOLATIONS && violations.push(text));
  return {
    url,
    keys,
    over,
    counts,
    violations,
    async send(what, method, path, { body, headers = {}, publishable = false, allowed = [200, 201] } = {}) {
      const isForm = body instanceof FormData;
      try {
        const reply = await fetch(`${url()}${path}`, {
          method,
          headers: {
            'x-api-key': publishable ? keys.publishable : keys.secret,
            ...(body && !isForm && { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(body && { body: isForm ? body : JSON.stringify(body) }),
          signal: AbortSignal.timeout(HUNG_MS),
        });
        const text = await reply.text();
        count(`${what} ${reply.status}`);
        if (reply.status === 503) return null;
        const parsed = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
        if (!allowed.includes(reply.status))
          complain(`${what}: ${method} ${path} answered ${reply.status} ${text.slice(0, 300)}`);
        return { status: reply.status, headers: reply.headers, body: parsed };
      } catch (error) {
        if ((error as Error).name === 'TimeoutError') complain(`${what}: ${method} ${path} hung for ${HUNG_MS} ms`);
        else if (error instanceof SyntaxError) complain(`${what}: ${method} ${path} answered no JSON`);
        count(`${what} cut`);
        // Nobody serves for a moment; the client comes back a little later.
        await new Promise((resolve) => setTimeout(resolve, 100));
        return null;
      }
    },
  };
}

/** A client's pause between two requests, and while nobody serves. */
export async function think(random: Random, mostMs = 20): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, random.below(mostMs)));
}

export const complete = (reply: SoakReply, ...statuses: number[]): reply is NonNullable<SoakReply> =>
  reply !== null && statuses.includes(reply.status);
