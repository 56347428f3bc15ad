import type { ApiKey, Project } from '../projects/project.js';
import type { Caller } from './caller.js';

/** An operator at work inside a project: everything that its secret key may do, without the key. */
export function operatorCaller(project: Project): Caller {
  return { project, key: unstoredKey(project, 'secret'), bearer: { state: 'absent' } };
}

/**
 * Somebody with a publishable key whom an operator plays: the user of that id, or with null somebody who is not signed
 * in. For reads alone.
 */
export function playedCaller(project: Project, userId: string | null): Caller {
  const bearer: Caller['bearer'] = userId === null ? { state: 'absent' } : { state: 'user', userId };
  return { project, key: unstoredKey(project, 'publishable'), bearer };
}

function unstoredKey({ _id, createdAt }: Project, type: ApiKey['type']): ApiKey {
  return { id: _id, type, hash: '', last4: '', createdAt, expiresAt: null, revokedAt: null };
}
