import type { App } from '../../app.js';
import { findTokenKid, verifyToken } from '../../platform/jwt.js';
import type { Project } from '../projects/project.js';
import { findTokenKey } from '../projects/token-secret.js';
import type { Bearer } from './caller.js';

const MAX_TOKEN_CHARACTERS = 4096;

/** What an `Authorization` header says about the end user. Never throws: whether a bad token matters is for the rule that needs one. */
export function readBearer(app: App, project: Project, header: string): Bearer {
  if (header === '') return { state: 'absent' };
  const token = /^Bearer ([^\s]+)$/i.exec(header)?.[1];
  if (!token || token.length > MAX_TOKEN_CHARACTERS) return { state: 'invalid', code: 'TOKEN_INVALID' };
  const kid = findTokenKid(token);
  const key = kid === null ? null : findTokenKey(app, project, kid);
  if (!key) return { state: 'invalid', code: 'TOKEN_INVALID' };
  const claims = verifyToken(token, key, app.clock.now());
  if (typeof claims === 'string') return { state: 'invalid', code: claims };
  if (claims.projectId !== project._id.toHexString() || claims.userId !== claims.sub)
    return { state: 'invalid', code: 'TOKEN_INVALID' };
  return { state: 'user', userId: claims.userId };
}
