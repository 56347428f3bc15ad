import type { ObjectId } from 'bson';
import { LRUCache } from 'lru-cache';
import type { App } from '../../app.js';
import { invalid, missing } from '../../errors.js';
import type { EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import { ownKeyContext } from '../projects/own-code.js';
import type { RequestOrigin } from '../access/caller.js';
import type { Project, ProjectHook } from '../projects/project.js';
import { PROJECTS } from '../projects/project-store.js';

/** What a hook calls, opened: an HTTP address with its signing secret, or a handler in a file of the project. */
export type HandlerTarget = { url: string; secret: string } | { run: string };

/** One call of own code. */
export interface HandlerCall {
  projectId: ObjectId;
  /** Of the hook or schedule: the log and the circuit are kept by it. */
  ownerId: ObjectId;
  /** Sent as `webhook-id`: the same however often one thing is asked. */
  id: string;
  event: string;
  documentId?: string | null;
  target: HandlerTarget;
  body: string;
  timeoutMs: number;
  /** How many handlers have led to it, this one included. */
  depth: number;
  /** Runs in the background: it is tried regardless of earlier failures. */
  inBackground?: boolean;
  /** With which own code in a file acts as the caller. */
  credentials?: RequestOrigin['credentials'];
}

/** The writes of documents that own code is asked about. */
const WRITE_EVENTS = ['create', 'update', 'delete'] as const;
export type WriteEvent = (typeof WRITE_EVENTS)[number];

/** Events of accounts: sign-up, sign-in, delivery of a code. */
const USER_EVENTS: readonly string[] = ['users.signup', 'users.login', 'users.deliver'];

const EVENT_FORM = new RegExp(`^[A-Za-z][A-Za-z0-9_-]{0,63}\\.(${WRITE_EVENTS.join('|')})$`);

/** 400 INVALID_EVENTS for text that names no event of hooks. */
export function requireHookEvent(event: string): string {
  if (USER_EVENTS.includes(event) || (EVENT_FORM.test(event) && !event.startsWith('users.'))) return event;
  const forms = `<collection>.${WRITE_EVENTS.join('|')}, ${USER_EVENTS.join(', ')}`;
  throw invalid('INVALID_EVENTS', `${JSON.stringify(event.slice(0, 100))} is not an event of hooks: use ${forms}`);
}

/** The hook of an event; undefined without one. */
export function findHook({ hooks }: Pick<Project, 'hooks'>, event: string): ProjectHook | undefined {
  return hooks?.find((hook) => hook.event === event);
}

export const noHook = (event: string) =>
  missing('HOOK_NOT_FOUND', `The project has no hook for ${event.slice(0, 100)}`);

export const handlerContext = (projectId: ObjectId, id: ObjectId): string =>
  `project:${projectId.toHexString()}:hook:${id.toHexString()}`;

export const callsContext = (projectId: ObjectId): string => `project:${projectId.toHexString()}:calls`;

/** The address may hold a token, so it is stored encrypted with the secret that signs. */
export function encryptHandler(app: App, projectId: ObjectId, id: ObjectId, target: HandlerTarget): string {
  return app.secrets.encrypt(JSON.stringify(target), handlerContext(projectId, id));
}

/** Opened a moment ago, by what was encrypted: opening costs as much as the rest of a call. */
const opened = new LRUCache<string, HandlerTarget>({ max: 1_000 });

export function openHandler(app: App, projectId: ObjectId, hook: { id: ObjectId; target: string }): HandlerTarget {
  const context = handlerContext(projectId, hook.id);
  const known = opened.get(context + hook.target);
  if (known) return known;
  const target = JSON.parse(app.secrets.decrypt(hook.target, context)) as HandlerTarget;
  opened.set(context + hook.target, target);
  return target;
}

export const ENCRYPTED_HOOKS: EncryptedPlace = {
  collection: PROJECTS,
  fields: (record) => {
    const { _id, hooks = [], ownCode } = record as Project;
    const targets = hooks.map(({ id, target }, at) => ({
      ...{ path: `hooks.${at}.target`, encrypted: target },
      context: handlerContext(_id, id),
    }));
    const own = [
      { path: 'ownCode.key', encrypted: ownCode?.key, context: ownKeyContext(_id) },
      { path: 'ownCode.calls', encrypted: ownCode?.calls, context: callsContext(_id) },
    ];
    return [
      ...targets,
      ...own.flatMap(({ encrypted, ...place }) => (encrypted === undefined ? [] : [{ ...place, encrypted }])),
    ];
  },
};
