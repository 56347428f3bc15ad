import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { changeCollection } from './change-collection.js';
import type { AccessRules, Collection } from './collection.js';
import type { CollectionAccess } from './rules/collection-rules.js';
import { listLoosenedAccess } from './rules/compare-rules.js';
import { requireKnownNames } from './rules/require-sound-rules.js';
import { withRules } from './rules/review-rules.js';

/**
 * What a collection would be with these rules, and what they loosen, one line each. 400 for a rule with a mistake: that
 * is told before anybody is asked about loosening.
 */
export async function planRules(
  app: App,
  current: Collection,
  rules: AccessRules | null,
): Promise<{ next: CollectionAccess; loosened: string[] }> {
  const next = withRules(current, rules);
  await requireKnownNames(app, next);
  const { rls, isPublic } = next;
  return { next: { rules: next.rules ?? null, rls, isPublic }, loosened: listLoosenedAccess(current, next) };
}

/**
 * Gives a collection rules instead of those that it has, row-level security included; null for public access. 409
 * CONFIRMATION_REQUIRED when somebody may do more than before and nobody has agreed to it; then `prove` refuses who may
 * not do that.
 */
export function setRules(
  app: App,
  projectId: ObjectId,
  name: string,
  rules: AccessRules | null,
  { agreed, prove }: { agreed: boolean; prove?: () => Promise<void> },
): Promise<Collection> {
  return changeCollection(app, projectId, name, async (current) => {
    const { next, loosened } = await planRules(app, current, rules);
    if (loosened.length > 0 && !agreed) throw unconfirmed(loosened);
    if (loosened.length > 0) await prove?.();
    return next;
  });
}

/** The refusal to loosen what nobody has agreed to. */
export function unconfirmed(loosened: readonly string[]): Error {
  const message = `Nothing was changed. This loosens ${loosened.join('; ')}: repeat it with ?confirm=<name of the project> to agree`;
  return conflict('CONFIRMATION_REQUIRED', message);
}
