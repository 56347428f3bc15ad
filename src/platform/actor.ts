/**
 * On whose behalf a use case runs, as webhooks say it: an end user, a key without one, an operator (the command line
 * has no `id`), or the service itself.
 */
export interface Actor {
  type: 'user' | 'key' | 'operator' | 'system';
  id?: string;
}

/** The actor of background work: recovery after a crash, schedules. */
export const SYSTEM: Actor = { type: 'system' };

/** The same dependencies for a use case that runs on behalf of an actor. */
export function actingAs<A extends { readonly actor: Actor }>(app: A, actor: Actor): A {
  return { ...app, actor };
}
