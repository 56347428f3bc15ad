import { createHash } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { unauthenticated } from '../../errors.js';
import { randomToken } from '../../platform/ids.js';
import type { Bearer, Caller, HeldToken } from './caller.js';
import { judgeHeldToken } from './read-bearer.js';
import { callerFrom, findLiveKey, requireAdmittedOrigin } from './require-key.js';

export const STREAM_TICKETS = 'stream_tickets';

/** How long a ticket is good for. */
export const TICKET_MS = 60_000;

/**
 * The right to open one stream, for a browser's EventSource, which sends no headers of its own. It holds neither key
 * nor token, only what both can be judged by when it is used.
 */
interface StreamTicket {
  /** SHA-256 of the ticket. */
  _id: string;
  projectId: ObjectId;
  keyHash: string;
  user: { id: string; token: HeldToken } | null;
  expiresAt: Date;
}

/** A new ticket with the rights of the caller, and the record that has to be stored of it. */
export function newTicket(
  { clock }: Pick<App, 'clock'>,
  { project, key, bearer }: Caller,
): { ticket: string; record: StreamTicket } {
  const ticket = randomToken(32);
  const record = {
    _id: hash(ticket),
    projectId: project._id,
    keyHash: key.hash,
    user: bearer.state === 'user' && bearer.token ? { id: bearer.userId, token: bearer.token } : null,
    expiresAt: new Date(clock.now() + TICKET_MS),
  };
  return { ticket, record };
}

/**
 * Settles whose request this is by a ticket, which is used up by it. 401 TICKET_INVALID for one that is unknown, used
 * or too old, or whose key or token is not good any more; 403 for an origin off the allowlist.
 */
export async function settleTicket(app: App, ctx: Context, ticket: string): Promise<void> {
  const found = await app.db.collection<StreamTicket>(STREAM_TICKETS).findOneAndDelete({ _id: hash(ticket) });
  if (!found || found.expiresAt.getTime() <= app.clock.now()) throw badTicket();
  const owner = await findLiveKey(app, found.keyHash);
  if (!owner) throw badTicket();
  requireAdmittedOrigin(ctx, owner);
  const { user } = found;
  if (user && (await judgeHeldToken(app, owner.project, user.id, user.token)) !== null) throw badTicket();
  const bearer: Bearer = user
    ? { state: 'user', userId: user.id, session: user.token.id.session, token: user.token }
    : { state: 'absent' };
  ctx.state.caller = callerFrom(ctx, owner, bearer);
}

function hash(ticket: string): string {
  return createHash('sha256').update(ticket.slice(0, 200)).digest('base64url');
}

function badTicket(): Error {
  return unauthenticated('TICKET_INVALID', 'The ticket is unknown, used or too old: ask for another one');
}
