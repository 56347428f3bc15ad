import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { changeCollection } from './change-collection.js';
import type { Collection, Rls } from './collection.js';

/**
 * Switches row-level security on, to another mode or off (null). Documents without an owner stay, readable by the
 * secret key alone while private.
 */
export function setRls(app: App, projectId: ObjectId, name: string, rls: Rls | null): Promise<Collection> {
  return changeCollection(app, projectId, name, () => ({ rls }));
}
