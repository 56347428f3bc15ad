import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { changeCollection } from './change-collection.js';
import type { Collection, Rls } from './collection.js';
import { isServerOnly, PUBLIC_ACCESS, type CollectionAccess } from './rules/collection-rules.js';

/** The access of a collection with this row-level security; a collection that had it is public without (null). */
export function withRls(current: CollectionAccess, rls: Rls | null): CollectionAccess {
  if (!rls) return current.rls ? PUBLIC_ACCESS : accessOf(current);
  return { rls, rules: isServerOnly(current) ? null : current.rules, isPublic: false };
}

function accessOf({ rls, rules, isPublic }: CollectionAccess): CollectionAccess {
  return { rls, rules, isPublic };
}

/**
 * Switches row-level security on, to another mode or off (null). Documents without an owner stay, readable by the
 * secret key only while private. 400 INVALID_RULES while rules admit somebody.
 */
export function setRls(app: App, projectId: ObjectId, name: string, rls: Rls | null): Promise<Collection> {
  return changeCollection(app, projectId, name, (current) => withRls(current, rls));
}
