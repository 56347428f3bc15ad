import type { Context } from 'koa';
import type { App } from '../../app.js';
import { type Access, parameter } from '../../http/routes/route.js';
import { TEXT } from '../../platform/schema/schema.js';
import { type NewAuditEntry, withAuditEntry } from '../audit/audit-log.js';
import type { Caller } from '../access/caller.js';
import { PROJECT_OPERATOR, userCaller, type InProject } from '../access/operator-access.js';
import { actedBy, operatedProject } from '../access/require-operator.js';
import { badQuery } from '../documents/reply/query-text.js';
import type { Project } from '../projects/project.js';
import { requireUser } from '../users/user-store.js';
import { forbidden } from '../../errors.js';
import { requireCollection } from '../collections/collection-store.js';
import type { Collection } from '../collections/collection.js';

/** An operator with any role, in a collection of one of its projects. */
export const READS = inCollection(PROJECT_OPERATOR);

/** The query parameter with which an operator views documents as a user. */
export const VIEW_AS = parameter(
  'View as this user (id or email address), or as `anyone` for a caller who is not signed in',
  TEXT,
);

/** The id of the user to view as; null for `anyone`. 404 for an unknown user. */
export async function findViewedUser(app: App, project: Project, as: string): Promise<string | null> {
  return as === 'anyone' ? null : (await requireUser(app, project._id, as))._id.toHexString();
}

interface View extends Pick<NewAuditEntry, 'actor' | 'requestId'> {
  project: Project;
  collection: string;
  /** A user's id or e-mail address, or `anyone`. */
  as: string;
}

/** Reads documents as a user and records it in the audit log as `play as`. */
export async function viewAs<T>(
  app: App,
  { project, collection, as, ...act }: View,
  read: (caller: Caller) => Promise<T>,
): Promise<T> {
  const userId = await findViewedUser(app, project, as);
  const caller = userCaller(project, userId);
  // A read-only database cannot store the entry.
  if (app.db.refusal() !== null) return read(caller);
  const input = { project: project.name, collection, as: userId ?? as };
  return withAuditEntry(app, { ...act, action: 'play as', input }, () => read(caller));
}

const viewers = new WeakMap<Context, Caller>();

/**
 * Operators who may read a collection as the user of the query parameter `as`. It is recorded as `play as` and removed
 * from the query.
 */
export const BROWSES: Access<InCollection> = {
  ...READS,
  errors: {
    ...READS.errors,
    400: ['INVALID_QUERY', 'FIELD_NOT_READABLE'],
    401: [...new Set([...(READS.errors[401] ?? []), 'AUTH_REQUIRED'])],
    403: [...READS.errors[403]!, 'READ_BLOCKED', 'TOO_MANY_MEMBERSHIPS'],
    404: [...(READS.errors[404] ?? []), 'USER_NOT_FOUND'],
  },
  async around(app, ctx, run) {
    const as = takeViewAs(ctx);
    if (as === null) return run();
    const project = await operatedProject(app, ctx);
    const { name: collection } = await requireNamed(app, project, ctx.params.collection!);
    await viewAs(app, { ...actedBy(ctx), project, collection, as }, (caller) => {
      viewers.set(ctx, caller);
      return run();
    });
  },
  async give(app, ctx) {
    const given = await READS.give!(app, ctx);
    return { ...given, caller: viewers.get(ctx) ?? given.caller };
  },
};

function takeViewAs(ctx: Context): string | null {
  const parts = ctx.querystring.split('&');
  const asked = parts.filter((part) => part.startsWith('as='));
  if (asked.length === 0) return null;
  const [as = ''] = new URLSearchParams(asked[0]).getAll('as');
  if (asked.length > 1 || as === '') throw badQuery('as must be a user’s id or email address, or anyone');
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
  /** The collection in the path. */
  collection: Collection;
}

/** The same operators, in a collection of documents other than `users`. */
export function inCollection(access: Access<InProject>): Access<InCollection> {
  return {
    ...access,
    errors: { ...access.errors, 403: [...(access.errors[403] ?? []), 'USERS_BLOCKED'] },
    async give(app, ctx) {
      const given = await access.give!(app, ctx);
      return { ...given, collection: await requireNamed(app, given.project, ctx.params.collection!) };
    },
  };
}
