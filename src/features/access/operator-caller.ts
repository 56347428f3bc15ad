import type { ApiKey, Project } from '../projects/project.js';
import type { Caller } from './caller.js';

/** An operator in a project, with the rights of its secret key. */
export function operatorCaller(project: Project): Caller {
  return { project, key: unstoredKey(project, 'secret'), bearer: { state: 'absent' } };
}

/**
 * The user with a publishable key; null means not signed in. For operators who view data as a user, and for work that
 * the service does with a user's rights.
 */
export function userCaller(project: Project, userId: string | null): Caller {
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
