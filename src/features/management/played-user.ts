import type { Context } from 'koa';
import type { App } from '../../app.js';
import { parameter } from '../../http/routes/route.js';
import { TEXT } from '../../platform/schema/schema.js';
import { withAuditEntry, type NewAuditEntry } from '../audit/audit-log.js';
import type { Caller } from '../access/caller.js';
import { operatorCaller, playedCaller } from '../access/operator-caller.js';
import { actedBy } from '../access/require-operator.js';
import { badQuery } from '../documents/reply/query-text.js';
import type { Project } from '../projects/project.js';
import { requireUser } from '../users/user-store.js';

/** The parameter by which an operator looks as somebody else does. */
export const PLAYED = parameter('As this user sees it (id or e-mail address), or `anyone`, who is not signed in', TEXT);

/** The id of the user that an operator plays; null for somebody who is not signed in. 404 for an unknown one. */
export async function playedUser(app: App, project: Project, as: string): Promise<string | null> {
  return as === 'anyone' ? null : (await requireUser(app, project._id, as))._id.toHexString();
}

interface Played extends Pick<NewAuditEntry, 'actor' | 'requestId'> {
  project: Project;
  collection: string;
  /** A user's id or e-mail address, or `anyone`. */
  as: string;
}

/** Reads documents as somebody else does, which the audit log notes as `play as`. */
export async function playAs<T>(
  app: App,
  { project, collection, as, ...act }: Played,
  read: (caller: Caller) => Promise<T>,
): Promise<T> {
  const userId = await playedUser(app, project, as);
  const caller = playedCaller(project, userId);
  // What may only be read notes nothing.
  if ((app.db.refusal?.() ?? null) !== null) return read(caller);
  const input = { project: project.name, collection, as: userId ?? as };
  return withAuditEntry(app, { ...act, action: 'play as', input }, () => read(caller));
}

/**
 * Reads as the operator, or as somebody whom the parameter `as` of the query string names. `read` is given the query
 * without it.
 */
export async function readAsAsked<T>(
  app: App,
  ctx: Context,
  { project, collection }: { project: Project; collection: string },
  read: (caller: Caller, query: string) => Promise<T>,
): Promise<T> {
  const parts = ctx.querystring.split('&');
  const asked = parts.filter((part) => part.startsWith('as='));
  const rest = parts.filter((part) => !asked.includes(part)).join('&');
  if (asked.length === 0) return read(operatorCaller(project), ctx.querystring);
  const [as = ''] = new URLSearchParams(asked[0]).getAll('as');
  if (asked.length > 1 || as === '') throw badQuery('as is a user’s id or e-mail address, or anyone');
  return playAs(app, { ...actedBy(ctx), project, collection, as }, (caller) => read(caller, rest));
}
