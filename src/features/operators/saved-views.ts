import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { sha256Hex } from '../../platform/ids.js';
import { operatorStore, type Operator, type SavedView } from '../access/operator.js';

type Own = Pick<Operator, '_id'>;
const MAX_VIEWS = 200;
const ID_LENGTH = 24;

/** The saved views of an operator, of all collections, in the order in which they were saved first. */
export async function listViews(app: Pick<App, 'db'>, { _id }: Own): Promise<SavedView[]> {
  const found = await operatorStore(app).findOne({ _id }, { projection: { views: 1 } });
  return found?.views ?? [];
}

/** Saves a view in place of the one of its name, or as a new one: then the oldest beyond 200 goes. */
export async function saveView(app: Pick<App, 'db'>, { _id }: Own, view: Omit<SavedView, 'id'>): Promise<SavedView> {
  const { projectId, collection, name } = view;
  const saved = { id: sha256Hex(JSON.stringify([projectId, collection, name])).slice(0, ID_LENGTH), ...view };
  const store = operatorStore(app);
  const { matchedCount } = await store.updateOne({ _id, 'views.id': saved.id }, { $set: { 'views.$': saved } });
  if (matchedCount === 0) {
    // Unless the same one was added since: of two at once, either may be the later.
    const push = { views: { $each: [saved], $slice: -MAX_VIEWS } };
    await store.updateOne({ _id, 'views.id': { $ne: saved.id } }, { $push: push });
  }
  return saved;
}

/** Removes a view; 404 VIEW_NOT_FOUND. */
export async function removeView(app: Pick<App, 'db'>, { _id }: Own, id: string): Promise<void> {
  const { matchedCount } = await operatorStore(app).updateOne({ _id, 'views.id': id }, { $pull: { views: { id } } });
  if (matchedCount === 0) throw missing('VIEW_NOT_FOUND', 'You have no such view');
}
