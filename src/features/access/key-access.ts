import { actingAs } from '../../platform/actor.js';
import type { App } from '../../app.js';
import type { Access, RouteContext } from '../../http/routes/route.js';
import type { ApiKey, Project } from '../projects/project.js';
import { actorOf, type Caller } from './caller.js';
import {
  ANY_KEY_DESCRIPTION,
  KEY_IN_QUERY_DESCRIPTION,
  READS_DOCUMENTS_DESCRIPTION,
  SECRET_KEY_DESCRIPTION,
  withHooks,
} from './describe-access.js';
import { callerOf, rejectPublishable, authenticateKey, authenticateQueryKey } from './require-key.js';

/** The values that every route with a project's key hands to its handler. */
export interface ByKey {
  /** On behalf of the end user, else of the key. */
  app: App;
  caller: Caller;
  project: Project;
}

/** Those of keys, which are the same objects for all requests that share a copy of them. */
const acting = new WeakMap<ApiKey, { of: App; app: App }>();

/** The same dependencies on behalf of a caller. */
export function onBehalfOf(app: App, caller: Caller): App {
  if (caller.bearer.state === 'user') return actingAs(app, actorOf(caller));
  let known = acting.get(caller.key);
  if (known?.of !== app) acting.set(caller.key, (known = { of: app, app: actingAs(app, actorOf(caller)) }));
  return known.app;
}

/** The caller and its project, as a guard has settled them. */
export function giveCaller(app: App, ctx: RouteContext): ByKey {
  const caller = callerOf(ctx);
  return { app: onBehalfOf(app, caller), caller, project: caller.project };
}

/** Any valid key of the project. */
export const ANY_KEY: Access<ByKey> = { ...ANY_KEY_DESCRIPTION, admit: authenticateKey, give: giveCaller };

/** Any live key, of a request that the project's own code may be asked about. */
export const ASKED_KEY: Access<ByKey> = withHooks(ANY_KEY);

/** The project's secret key. */
export const SECRET_KEY: Access<ByKey> = {
  ...SECRET_KEY_DESCRIPTION,
  admit: (app, ctx) => {
    const settling = authenticateKey(app, ctx);
    if (settling) return settling.then(() => rejectPublishable(ctx));
    rejectPublishable(ctx);
    return null;
  },
  give: giveCaller,
};

/** The publishable key as `?key=`, which is gone from the query afterwards. */
export const KEY_IN_QUERY: Access<ByKey> = {
  ...KEY_IN_QUERY_DESCRIPTION,
  admit: authenticateQueryKey,
  give: giveCaller,
};

/** Any live key; `readFilter` decides which documents it may read. The caller is the project, not a user. */
export const READS_DOCUMENTS: Access<ByKey> = {
  ...READS_DOCUMENTS_DESCRIPTION,
  admit: authenticateKey,
  give: (app, ctx) => {
    const caller = callerOf(ctx);
    return { app, caller, project: caller.project };
  },
};
