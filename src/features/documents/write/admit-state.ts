import type { App } from '../../../app.js';
import type { AppError } from '../../../errors.js';
import type { Caller } from '../../access/caller.js';
import type { AskSet } from '../../access/rules/access-sets.js';
import type { Collection } from '../../collections/collection.js';
import type { StoredDocument } from '../store/document.js';
import type { StateWrite } from '../store/state-writes.js';
import { requireAdmitted, requireAdmittedAfter, type RuledAction } from './admit-write.js';
import { requireVersion, type ExpectedVersion } from './if-match.js';
import { documentNotFound, lookAt, requireDocumentId, requireWriteTarget, type WriteTarget } from './write-target.js';

interface AskedState {
  /** The rule that decides. */
  action: RuledAction;
  /** Whether the document is where the writer says it is. */
  isThere: (stored: StoredDocument) => boolean;
  expected?: ExpectedVersion | undefined;
  notFound?: () => AppError;
}

/**
 * Whether a writer may do something to a document that changes none of its fields: 401 at once, 404, 403, 412 by what
 * is stored.
 */
export async function openAdmission(
  { writer }: WriteTarget,
  { action, isThere, expected = null, notFound = documentNotFound }: AskedState,
): Promise<StateWrite['admit']> {
  const rules = action === 'update' ? (['read', 'update', 'updateTo'] as const) : (['read', 'delete'] as const);
  for (const name of rules) writer?.requireKnown(name);
  const sets = await writer?.openSets();
  return (stored, exists): stored is StoredDocument => {
    if (!stored || !isThere(stored)) throw notFound();
    if (writer) {
      const ask: AskSet = (...question) => sets!(exists)(...question);
      requireAdmitted(writer, action, stored, ask, notFound);
      if (action === 'update') requireAdmittedAfter(writer, stored, ask);
    }
    requireVersion(stored, expected);
    return true;
  };
}

/**
 * Throws what an update by the caller of no field at all would throw: 404 without such an active document, 401 or 403
 * where the caller may not change it. Answers where it is and when it was stored. Nothing is written.
 */
export async function requireUpdatable(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
): Promise<{ collection: Collection; createdAt: Date | null }> {
  const id = requireDocumentId(idText);
  const place = await requireWriteTarget(app, caller, collectionName);
  const { collection } = place;
  const admit = await openAdmission(place, { action: 'update', isThere: ({ isDeleted }) => isDeleted === false });
  return lookAt(app, collection, id, (stored, exists) => {
    admit(stored, exists);
    return { collection, createdAt: stored?.createdAt ?? null };
  });
}
