import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { changeCollection } from './change-collection.js';
import type { AccessRules, Collection } from './collection.js';
import { listLoosenedRules } from './rules/compare-rules.js';

/**
 * Gives a collection rules instead of those that it has, row-level security included; null for none. 409
 * CONFIRMATION_REQUIRED when somebody may do more than before and nobody has agreed to it.
 */
export function setRules(
  app: App,
  projectId: ObjectId,
  name: string,
  rules: AccessRules | null,
  { agreed }: { agreed: boolean },
): Promise<Collection> {
  return changeCollection(app, projectId, name, (current) => {
    const next = { rules, rls: rules ? null : current.rls };
    const loosened = listLoosenedRules(current, next);
    if (loosened.length > 0 && !agreed) throw unconfirmed(loosened);
    return next;
  });
}

/** The refusal to loosen what nobody has agreed to. */
export function unconfirmed(loosened: readonly string[]): Error {
  const message = `Nothing was changed. This loosens ${loosened.join('; ')}: repeat it with ?confirm=<name of the project> to agree`;
  return conflict('CONFIRMATION_REQUIRED', message);
}
