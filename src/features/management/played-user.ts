import type { Context } from 'koa';
import type { App } from '../../app.js';
import { type Access, parameter } from '../../http/routes/route.js';
import { TEXT } from '../../platform/schema/schema.js';
import { type NewAuditEntry, withAuditEntry } from '../audit/audit-log.js';
import type { Caller } from '../access/caller.js';
import { PROJECT_OPERATOR, type InProject } from '../access/operator-access.js';
import { playedCaller } from '../access/operator-caller.js';
import { actedBy, operatedProject } from '../access/require-operator.js';
import { badQuery } from '../documents/reply/query-text.js';
import type { Project } from '../projects/project.js';
import { requireUser } from '../users/user-store.js';
import { forbidden } from '../../errors.js';
import { requireCollection } from '../collections/collection-store.js';
import type { Collection } from '../collections/collection.js';

/** An operator in any role, in one of the collections of a project that it sees. */
export const READS = inCollection(PROJECT_OPERATOR);

/** The parameter by which an operator looks as somebody else does. */
export const PLAYED = parameter(
  'View as this user (id or email address), or as `anyone` for a caller who is not signed in',
  TEXT,
);

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
  if (app.db.refusal() !== null) return read(caller);
  const input = { project: project.name, collection, as: userId ?? as };
  return withAuditEntry(app, { ...act, action: 'play as', input }, () => read(caller));
}

const played = new WeakMap<Context, Caller>();

/**
 * Operators who may read a collection as somebody else, whom the parameter `as` of the query names: the audit log notes
 * it as `play as`, and the parameter is gone from the query afterwards.
 */
export const BROWSES: Access<InCollection> = {
  ...READS,
  refuses: {
    ...READS.refuses,
    400: ['INVALID_QUERY', 'FIELD_NOT_READABLE'],
    401: [...new Set([...(READS.refuses[401] ?? []), 'AUTH_REQUIRED'])],
    403: [...READS.refuses[403]!, 'READ_BLOCKED', 'TOO_MANY_MEMBERSHIPS'],
    404: [...(READS.refuses[404] ?? []), 'USER_NOT_FOUND'],
  },
  async around(app, ctx, run) {
    const as = takeAsked(ctx);
    if (as === null) return run();
    const project = await operatedProject(app, ctx);
    const { name: collection } = await requireNamed(app, project, ctx.params.collection!);
    await playAs(app, { ...actedBy(ctx), project, collection, as }, (caller) => {
      played.set(ctx, caller);
      return run();
    });
  },
  async give(app, ctx) {
    const given = await READS.give!(app, ctx);
    return { ...given, caller: played.get(ctx) ?? given.caller };
  },
};

function takeAsked(ctx: Context): string | null {
  const parts = ctx.querystring.split('&');
  const asked = parts.filter((part) => part.startsWith('as='));
  if (asked.length === 0) return null;
  const [as = ''] = new URLSearchParams(asked[0]).getAll('as');
  if (asked.length > 1 || as === '') throw badQuery('as is a user’s id or e-mail address, or anyone');
  ctx.querystring = parts.filter((part) => !asked.includes(part)).join('&');
  return as;
}

/** The collection of documents with this name: 404 for an unknown one, 403 USERS_BLOCKED for end users. */
export async function requireNamed(app: App, project: Project, name: string): Promise<Collection> {
  if (name.toLowerCase().startsWith('users')) {
    throw forbidden('USERS_BLOCKED', 'End users are not listed as documents: see /api/projects/:projectId/users');
  }
  return requireCollection(app, project._id, name);
}

export interface InCollection extends InProject {
  /** The one that the path names. */
  collection: Collection;
}

/** The same operators in one collection of documents, none of end users. */
export function inCollection(access: Access<InProject>): Access<InCollection> {
  return {
    ...access,
    refuses: { ...access.refuses, 403: [...(access.refuses[403] ?? []), 'USERS_BLOCKED'] },
    async give(app, ctx) {
      const given = await access.give!(app, ctx);
      return { ...given, collection: await requireNamed(app, given.project, ctx.params.collection!) };
    },
  };
}
