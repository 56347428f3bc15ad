import type { ApiKey, Project } from '../projects/project.js';
import type { Caller } from './caller.js';

/** An operator at work inside a project: everything that its secret key may do, without the key. */
export function operatorCaller(project: Project): Caller {
  return { project, key: unstoredKey(project, 'secret'), bearer: { state: 'absent' } };
}

/**
 * The user of that id with a publishable key, or with null somebody who is not signed in: for reads by an operator who
 * views data as that user, and for what the service does with a user's rights.
 */
export function playedCaller(project: Project, userId: string | null): Caller {
  const bearer: Caller['bearer'] = userId === null ? { state: 'absent' } : { state: 'user', userId };
  return { project, key: unstoredKey(project, 'publishable'), bearer };
}

/** The end user of a caller, without the rights of a secret key. */
export function endUserOf(caller: Caller): Caller {
  return caller.key.type === 'secret' ? { ...caller, key: unstoredKey(caller.project, 'publishable') } : caller;
}

function unstoredKey({ _id, createdAt }: Project, type: ApiKey['type']): ApiKey {
  return { id: _id, type, hash: '', last4: '', createdAt, expiresAt: null, revokedAt: null };
}
