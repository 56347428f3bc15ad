import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import { sha256Hex } from '../../platform/ids.js';
import { userCaller } from '../access/operator-access.js';
import type { Collection } from '../collections/collection.js';
import { readSet } from '../documents/write/ask-hooks.js';
import { applyChange } from '../documents/write/change.js';
import { askBefore } from '../hooks/before-calls.js';
import { callHandler, HandlerFailure } from '../hooks/call-handler.js';
import { findHook, openHandler } from '../hooks/hook.js';
import { sendSystemMail, type SystemMail } from '../mail/sending/send-mail.js';
import type { Project } from '../projects/project.js';
import { presentUser } from './accounts/present-user.js';
import type { User } from './user.js';

/** The client of a request, and how many handlers have led to that. */
interface Client {
  ip: string;
  depth?: number;
}

/** The caller as passed to own code, before sign-in. */
function callerOf(project: Project, { ip, depth = 0 }: Client, userId: string | null = null) {
  return { ...userCaller(project, userId), origin: { ip, depth, credentials: { key: '', authorization: '' } } };
}

/**
 * Asks own code whether an account may be made (`users.signup`), and answers it with the fields that were set. The
 * account is not stored yet.
 */
export async function askSignUp(
  app: App,
  project: Project,
  collection: Collection,
  user: User,
  client: Client,
): Promise<User> {
  const place = { collection, id: user._id, action: 'insert' as const };
  const answers = await askBefore(app, callerOf(project, client), {
    event: 'users.signup',
    asked: [{ id: user._id.toHexString(), document: presentUser(user) }],
    isOne: true,
    take: (set) => readSet(place, user, set, app.clock.now()),
  });
  const change = answers?.[0];
  return change ? applyChange(change, user) : user;
}

/** Asks own code whether an authenticated user may sign in (`users.login`); throws its error. */
export async function askSignIn(app: App, project: Project, user: User, client: Client, method: string): Promise<void> {
  await askBefore(app, callerOf(project, client, user._id.toHexString()), {
    event: 'users.login',
    asked: [{ id: user._id.toHexString(), document: { ...presentUser(user), method } }],
    isOne: true,
    take: (set) => {
      if (Object.keys(set).length > 0) throw new HandlerFailure('"set" cannot be used in a hook of signing in.');
      return null;
    },
  });
}

/**
 * Delivers what the service owes a user: with own code if it handles `users.deliver`, else as mail. `once` names
 * the delivery, however often it is tried. 503 HOOK_FAILED.
 */
export async function deliverToUser(
  app: App,
  project: Project,
  mail: SystemMail,
  { user, once = new ObjectId().toHexString() }: { user: Partial<User> | null; once?: string },
): Promise<void> {
  const event = 'users.deliver';
  const hook = findHook(project, event);
  if (hook && (await isDelivered())) return;
  await sendSystemMail(app, project, mail);

  async function isDelivered(): Promise<boolean> {
    const { template, to, variables } = mail;
    const account = user && '_id' in user ? presentUser(user as User) : null;
    const id = `call_${sha256Hex([project._id.toHexString(), template, to, once].join('\n')).slice(0, 32)}`;
    const caller = { userId: account?._id ?? null, roles: [], ip: null };
    const document = { template, to, ...variables, user: account };
    const call = {
      ...{ projectId: project._id, ownerId: hook!.id, id, event, timeoutMs: hook!.timeoutMs, depth: 1 },
      target: openHandler(app, project._id, hook!),
      body: JSON.stringify({ event, caller, document, idempotencyKey: null }),
    };
    try {
      return await callHandler(app, call, readDelivered);
    } catch (error) {
      if (!(error instanceof HandlerFailure)) throw error;
      app.log.warn({ project: project._id.toHexString(), event, reason: error.message }, 'a hook failed');
      if (hook!.onFailure === 'allow') return false;
      const text = 'The project’s own code for users.deliver gave no proper answer: nothing was delivered';
      throw unavailable('HOOK_FAILED', text, { retryAfterSeconds: 1, cause: error });
    }
  }
}

function readDelivered(json: unknown): boolean {
  const { delivered } = (json ?? {}) as Record<string, unknown>;
  if (typeof delivered !== 'boolean') throw new HandlerFailure('The answer says no "delivered".');
  return delivered;
}
