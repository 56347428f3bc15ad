import type { ApiKey, Project } from '../projects/project.js';

/** What a request's bearer token turned out to be. A bad one counts as absent where none is needed (decisions.md 2). */
export type Bearer =
  | { state: 'absent' }
  | { state: 'invalid'; code: 'TOKEN_INVALID' | 'TOKEN_EXPIRED' }
  /** `session` is the one that the token came from, if any. */
  | { state: 'user'; userId: string; session?: string | null };

/** Who asks: the project its key names, the key, and the end user its bearer names. */
export interface Caller {
  project: Project;
  key: ApiKey;
  bearer: Bearer;
}
