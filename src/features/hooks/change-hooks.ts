import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, invalid } from '../../errors.js';
import { maskAddress } from '../../platform/secrets/mask-address.js';
import type { Project, ProjectHook } from '../projects/project.js';
import { changeProjectList } from '../projects/project-store.js';
import { addWebhook, isOwnHandler, requireTargetUrl, listWebhooks } from '../webhooks/add-webhook.js';
import { generateWebhookSecret } from '../webhooks/deliveries/sign-delivery.js';
import { removeWebhook } from '../webhooks/edit-webhook.js';
import type { Webhook } from '../webhooks/webhook-store.js';
import { removeCalls } from './call-log.js';
import { requireOwnFile } from '../projects/own-code.js';
import { findHook, noHook, openHandler, requireHookEvent, encryptHandler, type HandlerTarget } from './hook.js';
import { randomUUID } from 'node:crypto';
import { readAnswer } from './before-calls.js';
import { tryHandler } from './call-handler.js';

export const MIN_TIMEOUT_MS = 500;
export const MAX_TIMEOUT_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 5_000;
const MAX_HOOKS = 200;

export interface NewHook {
  event: string;
  url?: string;
  run?: string;
  onFailure?: ProjectHook['onFailure'];
  timeoutMs?: number;
  /** Answer the hook of that event instead of refusing; it is changed where it differs. */
  ifNotExists?: boolean;
}

interface AddedHook {
  hook: ProjectHook;
  /** Signs the calls; shown once. Null where nothing is signed, or the hook was there already. */
  secret: string | null;
  created: boolean;
}

/**
 * Has own code called before an event. 400 for a bad event, address or time limit, 409 HOOK_EXISTS for an event that
 * has its hook.
 */
export async function addHook(app: App, project: Project, input: NewHook): Promise<AddedHook> {
  const event = requireHookEvent(input.event);
  const timeoutMs = parseTimeout(input.timeoutMs);
  const { target, secret } = await newTarget(app, project, input, event);
  const id = new ObjectId();
  const hook: ProjectHook = {
    ...{ id, event, target: encryptHandler(app, project._id, id, target) },
    ...{ onFailure: input.onFailure ?? 'refuse', timeoutMs, createdAt: new Date(app.clock.now()) },
  };
  let existing: ProjectHook | undefined;
  await changeProjectList(app, project, 'hooks', (hooks = []) => {
    existing = hooks.find((other) => other.event === event);
    if (existing && !input.ifNotExists) throw conflict('HOOK_EXISTS', `${event} has a hook: remove that one first`);
    if (hooks.length >= MAX_HOOKS) throw invalid('HOOK_LIMIT', `A project has at most ${MAX_HOOKS} hooks`);
    return existing ? hooks : [...hooks, hook];
  });
  return existing ? { hook: existing, secret: null, created: false } : { hook, secret, created: true };
}

const AFTER = /^after\.([A-Za-z][A-Za-z0-9_-]{0,63})\.(create|update|delete)$/;

/** The webhook event of a handler `after.<collection>.create|update|delete`; undefined for other text. */
function heardAfter(event: string): string | undefined {
  const [, collection, action] = AFTER.exec(event) ?? [];
  return collection && `${collection}.${action === 'create' ? 'insert' : action}`;
}

/** heardAfter of a name that must be one; 400 INVALID_EVENTS. */
export function readAfterEvent(event: string): string {
  const heard = heardAfter(event);
  if (heard === undefined) throw invalid('INVALID_EVENTS', 'Use after.<collection>.create, .update or .delete');
  return heard;
}

/** The event handlers of a project's files: webhooks whose receiver is the project's own process. */
export async function listAfter(app: App, project: Project): Promise<(Webhook & { event: string })[]> {
  return (await listWebhooks(app, project)).flatMap((webhook) => {
    const [collection, action] = (webhook.events[0] ?? '').split('.');
    const event = `after.${collection}.${action === 'insert' ? 'create' : action}`;
    return isOwnHandler(webhook.url) && heardAfter(event) === webhook.events.join() ? [{ ...webhook, event }] : [];
  });
}

/** Subscribes a handler of a file to an event. 400 for a bad event or file, 409 HOOK_EXISTS unless `ifNotExists`. */
export async function addAfter(
  app: App,
  project: Project,
  { event, run, ifNotExists = false }: Pick<NewHook, 'event' | 'run' | 'ifNotExists'>,
): Promise<{ webhook: Webhook; created: boolean }> {
  const heard = readAfterEvent(event);
  if (run === undefined) {
    throw invalid('INVALID_HOOK', `Name a file to run; an address hears of it by: bsvc webhook add --events ${heard}`);
  }
  const url = `run:${await requireOwnFile(app, project, run, event)}`;
  const input = { url, isHandler: true as const, events: [heard], ifNotExists: true };
  const { webhook, created } = await addWebhook(app, project, input);
  if (!created && !ifNotExists) throw conflict('HOOK_EXISTS', `${event} has a handler: remove that one first`);
  return { webhook, created };
}

/** Removes an event handler with its pending deliveries; 404. */
export async function removeAfter(app: App, project: Project, event: string): Promise<Webhook> {
  const found = (await listAfter(app, project)).find((other) => other.event === event);
  if (!found) throw noHook(event);
  await removeWebhook(app, project, found.id.toHexString());
  return found;
}

/** presentHook for an event handler. */
export function presentAfter(event: string, { id, url, createdAt }: Webhook) {
  return {
    ...{ id: id.toHexString(), event, url: null, run: url.slice('run:'.length), onFailure: 'retry' as const },
    ...{ timeoutMs: MAX_TIMEOUT_MS, createdAt: createdAt.toISOString() },
  };
}

/** The handler as requested: either `url` or `run`. A new address gets a new secret. */
export async function newTarget(
  app: App,
  project: Project,
  { url, run }: Pick<NewHook, 'url' | 'run'>,
  handler: string,
): Promise<{ target: HandlerTarget; secret: string | null }> {
  if ((url === undefined) === (run === undefined)) throw invalid('INVALID_HOOK', 'Name either a url or a file to run');
  if (run !== undefined) return { target: { run: await requireOwnFile(app, project, run, handler) }, secret: null };
  const secret = generateWebhookSecret();
  return { target: { url: await requireTargetUrl(app, url!), secret }, secret };
}

/**
 * The hook of an event as `input` says, whether or not there is one: what is called stays, with its secret and log,
 * where it is the same.
 */
export async function setHook(app: App, project: Project, input: NewHook): Promise<Pick<AddedHook, 'hook' | 'secret'>> {
  const event = requireHookEvent(input.event);
  const current = findHook(project, event);
  if (!current) return addHook(app, project, { ...input, ifNotExists: true });
  const { target, secret } = await newTarget(app, project, input, event);
  const present = openHandler(app, project._id, current);
  const isSame =
    'run' in target ? 'run' in present && present.run === target.run : 'url' in present && present.url === target.url;
  const hook: ProjectHook = {
    ...current,
    ...(!isSame && { target: encryptHandler(app, project._id, current.id, target) }),
    ...{
      onFailure: input.onFailure ?? current.onFailure,
      timeoutMs: parseTimeout(input.timeoutMs ?? current.timeoutMs),
    },
  };
  await changeProjectList(app, project, 'hooks', (hooks = []) => {
    if (!hooks.some(({ id }) => id.equals(hook.id))) throw noHook(event);
    return hooks.map((other) => (other.id.equals(hook.id) ? hook : other));
  });
  return { hook, secret: isSame ? null : secret };
}

/** How long a hook is waited for; 400 INVALID_TIMEOUT. */
export function parseTimeout(timeoutMs = DEFAULT_TIMEOUT_MS): number {
  if (Number.isInteger(timeoutMs) && timeoutMs >= MIN_TIMEOUT_MS && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw invalid('INVALID_TIMEOUT', `A hook is given ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS} milliseconds`);
}

/** Removes the hook of an event with its log; 404. */
export async function removeHook(app: App, project: Project, event: string): Promise<ProjectHook> {
  let removed: ProjectHook | undefined;
  await changeProjectList(app, project, 'hooks', (hooks = []) => {
    removed = findHook({ hooks }, event);
    if (!removed) throw noHook(event);
    return hooks.filter((hook) => hook !== removed);
  });
  await removeCalls(app, removed!.id);
  return removed!;
}

/** A hook as command line and HTTP show it: never its secret. `full`: with the whole address. */
export function presentHook(app: App, { _id }: Project, hook: ProjectHook, full = true) {
  const target = openHandler(app, _id, hook);
  return {
    id: hook.id.toHexString(),
    event: hook.event,
    url: 'url' in target ? (full ? target.url : maskAddress(target.url)) : null,
    run: 'run' in target ? target.run : null,
    onFailure: hook.onFailure,
    timeoutMs: hook.timeoutMs,
    createdAt: hook.createdAt.toISOString(),
  };
}

/**
 * Calls the hook of an event once with a document that is not stored, and answers what it says, or why that is no
 * answer. 404 without a hook.
 */
export async function testHook(
  app: App,
  project: Project,
  event: string,
  document: Record<string, unknown>,
): Promise<{ answer: unknown; error: string | null }> {
  if (event.startsWith('after.')) {
    throw invalid(
      'INVALID_EVENTS',
      'What hears of an event is tried with a real one: bsvc webhook replay sends it again',
    );
  }
  const hook = findHook(project, event);
  if (!hook) throw noHook(event);
  const caller = { userId: null, roles: [], ip: null };
  const call = {
    ...{ projectId: project._id, ownerId: hook.id, id: `call_${randomUUID()}`, event, timeoutMs: hook.timeoutMs },
    ...{ depth: 1, target: openHandler(app, project._id, hook) },
    body: JSON.stringify({ event, test: true, caller, document, idempotencyKey: null }),
  };
  return tryHandler(app, call, (json) => {
    readAnswer(json, 1, true);
    return json;
  });
}
