import type { AppError } from '../../../errors.js';
import type { AskSet } from '../../access/rules/caller-sets.js';
import type { StoredDocument } from '../store/document.js';
import type { StateWrite } from '../store/state-writes.js';
import { requireAdmitted, requireAdmittedAfter, type RuledAction } from './admit-write.js';
import { requireVersion, type ExpectedVersion } from './if-match.js';
import { documentNotFound, type WriteTarget } from './write-target.js';

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
