import { isUtf8 } from 'node:buffer';
import type { App } from '../../app.js';
import { MAX_CALLS, OwnCodeError } from '../../platform/processes/own-code.js';
import { OutboundError } from '../../platform/network/outbound.js';
import { VERSION } from '../../package.js';
import { findNonUtf8, readBeginning } from '../../text.js';
import { DEPTH_HEADER } from '../access/caller.js';
import { signDelivery } from '../webhooks/deliveries/sign-delivery.js';
import { noteCall } from './call-log.js';
import type { HandlerCall } from './hook.js';
import { ownCodeSettings } from '../projects/own-code.js';

/** Why there is no proper answer; the message is for the log. */
export class HandlerFailure extends Error {
  constructor(
    message: string,
    readonly status: number | null = null,
    readonly answer = '',
  ) {
    super(message);
  }
}

const MAX_ANSWER_BYTES = 64 * 1024;
/** Consecutive failures after which the handler is skipped, until a later try succeeds. */
const PATIENCE = 5;
const REST_MS = 30_000;

interface Circuit {
  failures: number;
  openUntil: number;
}

/** What this process knows of handlers: no other has to. */
interface Calls {
  inFlight: Map<string, number>;
  circuits: Map<string, Circuit>;
}

const known = new WeakMap<object, Calls>();

function callsOf(app: App): Calls {
  let calls = known.get(app.outbound);
  if (!calls) known.set(app.outbound, (calls = { inFlight: new Map(), circuits: new Map() }));
  return calls;
}

/**
 * Calls own code once and answers what `read` makes of its JSON, which throws HandlerFailure for what it does not
 * understand; without `read` any answer of 200 to 299 is as good, as text. Throws HandlerFailure without an answer in
 * time, too. The call is logged, and counts for the circuit.
 */
export async function callHandler<T = string>(app: App, call: HandlerCall, read: Read<T> | null): Promise<T> {
  const { inFlight, circuits } = callsOf(app);
  const project = call.projectId.toHexString();
  const owner = call.ownerId.toHexString();
  const circuit = (!call.inBackground && circuits.get(owner)) || { failures: 0, openUntil: 0 };
  const now = app.clock.now();
  if (circuit.openUntil > now) throw new HandlerFailure('The handler failed five times in a row and rests for 30 s.');
  const running = inFlight.get(project) ?? 0;
  if (running >= MAX_CALLS) throw new HandlerFailure(`${MAX_CALLS} calls of the project are under way.`);
  inFlight.set(project, running + 1);
  // While one tries again, the others go on not waiting.
  if (circuit.failures >= PATIENCE) circuit.openUntil = now + call.timeoutMs;
  const begun = performance.now();
  const log = (status: number | null, response: string, error: string | null): void =>
    noteCall(app, call, {
      at: new Date(now),
      durationMs: Math.round(performance.now() - begun),
      status,
      response,
      error,
    });
  try {
    const reply = await send(app, call, now);
    const { status, text } = reply;
    const answer = readAnswer(reply, read);
    if (!call.inBackground) circuits.delete(owner);
    log(status, text, null);
    app.metrics.event('hook_calls', 'answered');
    return answer;
  } catch (error) {
    if (!(error instanceof HandlerFailure)) throw error;
    circuit.failures += 1;
    if (circuit.failures >= PATIENCE) circuit.openUntil = app.clock.now() + REST_MS;
    if (!call.inBackground) circuits.set(owner, circuit);
    log(error.status, error.answer, error.message);
    app.metrics.event('hook_calls', 'failed');
    throw error;
  } finally {
    const left = inFlight.get(project)! - 1;
    if (left === 0) inFlight.delete(project);
    else inFlight.set(project, left);
  }
}

/** callHandler for a try whose outcome is shown: what it says, or why that is no answer. */
export async function tryHandler<T = string>(
  app: App,
  call: HandlerCall,
  read: Read<T> | null,
): Promise<{ answer: T | string; error: string | null }> {
  try {
    return { answer: await callHandler(app, call, read), error: null };
  } catch (error) {
    if (!(error instanceof HandlerFailure)) throw error;
    return { answer: error.answer, error: error.message };
  }
}

type Read<T> = (answer: unknown) => T;

interface Reply {
  status: number;
  text: string;
  /** Why the text is not what was sent. */
  problem: string | null;
}

function readAnswer<T>({ status, text, problem }: Reply, read: Read<T> | null): T {
  if (!read) {
    if (status >= 200 && status < 300) return text as T;
    throw new HandlerFailure(`The handler answered ${status}.`, status, text);
  }
  if (status !== 200) throw new HandlerFailure(`The handler answered ${status}, not 200.`, status, text);
  if (problem !== null) throw new HandlerFailure(problem, status, text);
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new HandlerFailure('The answer is no JSON.', status, text);
  }
  try {
    return read(answer);
  } catch (error) {
    throw error instanceof HandlerFailure ? new HandlerFailure(error.message, status, text) : error;
  }
}

async function send(app: App, call: HandlerCall, nowMs: number): Promise<Reply> {
  const { target, id, body, timeoutMs, depth } = call;
  if ('run' in target) return { status: 200, text: await runFile(app, call, target.run), problem: null };
  try {
    const { status, body: answer } = await app.outbound.send({
      url: target.url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `bsvc/${VERSION}`,
        [DEPTH_HEADER]: String(depth),
        ...signDelivery([target.secret], id, nowMs, body),
      },
      body,
      signal: AbortSignal.timeout(timeoutMs),
      keptBytes: MAX_ANSWER_BYTES + 1,
    });
    return { status, text: readBeginning(answer), problem: findProblem(answer) };
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const isLate = error.failure === 'aborted' || error.failure === 'timeout';
    throw new HandlerFailure(isLate ? `There was no answer within ${timeoutMs} ms.` : error.message);
  }
}

/** Decoded leniently, a wrong byte would be stored as something else. */
function findProblem(answer: Buffer): string | null {
  if (answer.length > MAX_ANSWER_BYTES) return `The answer is longer than ${MAX_ANSWER_BYTES / 1024} KiB.`;
  return isUtf8(answer) ? null : `The answer is not UTF-8 (byte ${findNonUtf8(answer) + 1}).`;
}

async function runFile(app: App, { projectId, body, timeoutMs, depth, credentials }: HandlerCall, handler: string) {
  const call = { handler, payload: body, timeoutMs, depth, isAwaited: depth > 0, ...(credentials && { credentials }) };
  try {
    const answer = await app.ownCode.call(projectId.toHexString(), ownCodeSettings(app, projectId), call);
    return JSON.stringify(answer) ?? 'null';
  } catch (error) {
    throw error instanceof OwnCodeError ? new HandlerFailure(error.message) : error;
  }
}
