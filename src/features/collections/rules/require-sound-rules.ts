import { isDeepStrictEqual } from 'node:util';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { collectionStore } from '../collection-store.js';
import { defaultUsersCollection, USERS } from '../users-collection.js';
import { checkRules } from './check-rules.js';
import { requireRuleFit } from './rule-misfits.js';

/**
 * Refuses settings under which rules would name what is not there: 400 INVALID_RULE or INVALID_RULES for rules that are
 * new, 409 NAMED_BY_RULE when a field goes that rules name, 409 RULE_MISFITS for stored documents. `from` is null for a
 * collection that is being registered.
 */
export async function requireSoundRules(app: App, from: Collection | null, to: Collection): Promise<void> {
  if (to.name === USERS) {
    checkRules(to, to);
    await requireNamedAttributes(app, to);
    return;
  }
  if (!to.rules) return;
  const users = await findUsers(app, to.projectId);
  if (from && isDeepStrictEqual(from.rules, to.rules)) asNamed(() => checkRules(to, users));
  else checkRules(to, users);
  if (from) await requireRuleFit(app, from, to);
}

/** 400 INVALID_RULE or INVALID_RULES for rules that name what is not there; stored documents are not looked at. */
export async function requireKnownNames(app: App, collection: Collection): Promise<void> {
  if (collection.rules) checkRules(collection, await findUsers(app, collection.projectId));
}

/** The rules of other collections may name what users are declared to have. */
async function requireNamedAttributes(app: App, users: Collection): Promise<void> {
  const ruled = collectionStore(app).find({ projectId: users.projectId, state: 'active', rules: { $type: 'object' } });
  for (const collection of await ruled.toArray()) asNamed(() => checkRules(collection, users));
}

function asNamed(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const message = `A rule names what this would take away. ${error.message}: change the rule first`;
    throw conflict('NAMED_BY_RULE', message, { details: error.details, cause: error });
  }
}

async function findUsers(app: App, projectId: ObjectId): Promise<Collection> {
  const stored = await collectionStore(app).findOne({ projectId, name: USERS, state: 'active' });
  return stored ?? defaultUsersCollection(projectId);
}
