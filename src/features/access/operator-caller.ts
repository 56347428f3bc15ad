import type { ApiKey, Project } from '../projects/project.js';
import type { Caller } from './caller.js';

/** An operator at work inside a project: everything that its secret key may do, without the key. */
export function operatorCaller(project: Project): Caller {
  const key: ApiKey = {
    id: project._id,
    type: 'secret',
    hash: '',
    last4: '',
    createdAt: project.createdAt,
    expiresAt: null,
    revokedAt: null,
  };
  return { project, key, bearer: { state: 'absent' } };
}
