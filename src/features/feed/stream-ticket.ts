import type { Context } from 'koa';
import type { App } from '../../app.js';
import { unauthenticated } from '../../errors.js';
import type { Bearer, Caller, HeldToken } from '../access/caller.js';
import { judgeHeldToken } from '../access/read-bearer.js';
import { callerFrom, findLiveKey, requireAdmittedOrigin } from '../access/require-key.js';
import { oneTimeTokens } from '../quota/one-time-token.js';

/** How long a ticket is good for. */
export const TICKET_MS = 60_000;

/**
 * The right to open one stream, for a browser's EventSource, which sends no headers of its own. It holds neither key
 * nor token, only what both can be judged by when it is used.
 */
const STREAM_TICKETS = oneTimeTokens<{ keyHash: string; user: { id: string; token: HeldToken } | null }>(
  'stream',
  TICKET_MS,
);

/** A new ticket with the rights of the caller. */
export function giveTicket(app: App, { project, key, bearer }: Caller): Promise<string> {
  const user = bearer.state === 'user' && bearer.token ? { id: bearer.userId, token: bearer.token } : null;
  return STREAM_TICKETS.give(app, project, { keyHash: key.hash, user });
}

/**
 * Settles whose request this is by a ticket, which is used up by it. 401 TICKET_INVALID for one that is unknown, used
 * or too old, or whose key or token is not good any more; 403 for an origin off the allowlist.
 */
export async function authenticateTicket(app: App, ctx: Context, ticket: string): Promise<void> {
  const found = await STREAM_TICKETS.take(app, null, ticket);
  const owner = found && (await findLiveKey(app, found.held.keyHash));
  if (!owner) throw badTicket();
  requireAdmittedOrigin(ctx, owner);
  const { user } = found.held;
  if (user && (await judgeHeldToken(app, owner.project, user.id, user.token)) !== null) throw badTicket();
  const bearer: Bearer = user
    ? { state: 'user', userId: user.id, session: user.token.id.session, token: user.token }
    : { state: 'absent' };
  ctx.state.caller = callerFrom(ctx, owner, bearer);
}

function badTicket(): Error {
  return unauthenticated('TICKET_INVALID', 'The ticket is unknown, used or expired. Request a new one');
}
