import type { App } from '../../../app.js';
import { invalid, type AppError } from '../../../errors.js';
import type { Exists, ReadFields } from '../../../platform/database/database.js';
import { findObjectId } from '../../../platform/ids.js';
import { findVisibility, openReferable, type Admitted, type Referrer } from '../../access/access-rules.js';
import { findCollection, peekCollection } from '../../collections/collection-store.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { referencesOf, referenceText, type Reference } from '../../collections/references/reference.js';
import type { StoredDocument } from './document.js';

/** Most documents that one write looks for. */
export const MAX_CHECKS = 1000;

/** The checked references of a document, for a decision inside of its write. */
export interface NewReferences {
  /**
   * 400 REFERENCE_MISSING for what is referred to from now on and is not there, or not for the referrer to read; 400
   * TOO_MANY_REFERENCES. `stored` is null for a new document.
   */
  require(stored: StoredDocument | null, next: StoredDocument, exists: Exists, read: ReadFields): void;
}

/** What a field refers to. */
interface Target {
  collection: Collection;
  /** Null for all that are there. */
  referable: Admitted | null;
  /** Fields that the referrer may not name: what equals their values would tell them. */
  restricted: ReadonlySet<string>;
}

/** A write, and the top-level fields that it may set. */
interface ReferringWrite {
  collection: Collection;
  referrer: Referrer | null;
  named: (field: string) => boolean;
}

/**
 * Opens the references of a write; null where it sets none. What a document refers to may stay, or go. A promise only
 * when it takes time.
 */
export function openReferences(app: App, write: ReferringWrite): NewReferences | null | Promise<NewReferences> {
  const references = referencesOf(write.collection);
  if (!references.some((reference) => isNamed(reference, write))) return null;
  return openNamed(app, write, references);
}

const isNamed = ({ field, same }: Reference, { named }: ReferringWrite): boolean => named(field) || same.some(named);

async function openNamed(app: App, write: ReferringWrite, references: readonly Reference[]): Promise<NewReferences> {
  const { collection, referrer, named } = write;
  // A guess at what is not shown is a new reference.
  const visibility = referrer && (await findVisibility(app, collection, referrer.caller));
  const targets = new Map<string, Target | null>();
  for (const reference of references) {
    const { to } = reference;
    if (!targets.has(to) && isNamed(reference, write)) targets.set(to, await openTarget(app, collection, to, referrer));
  }
  return {
    require(stored, next, exists, read) {
      const wanted = new Map<string, { reference: Reference; id: string }>();
      for (const reference of references) {
        const { field, same } = reference;
        const isGuess = visibility?.restricted.has(field) && named(field);
        const isMoved = same.some((name) => stored?.[name] !== next[name]);
        if (stored?.[field] === next[field] && !isGuess && !isMoved) continue;
        const held = new Set(isGuess || isMoved ? [] : [stored?.[field]].flat());
        for (const value of [next[field]].flat()) {
          if (typeof value === 'string' && !held.has(value)) wanted.set(`${field} ${value}`, { reference, id: value });
        }
      }
      if (wanted.size > MAX_CHECKS) throw tooManyReferences();
      const ownId = stored ? null : next._id.toHexString();
      for (const { reference, id } of wanted.values()) {
        if (reference.to === collection.name && id === ownId) continue;
        const target = targets.get(reference.to);
        const common = Object.fromEntries(reference.same.map((name) => [name, next[name] ?? null]));
        if (!target || !isThere(target, { text: id, common }, exists, read)) throw referenceMissing(reference);
      }
    },
  };
}

async function openTarget(
  app: App,
  { projectId }: Collection,
  to: string,
  referrer: Referrer | null,
): Promise<Target | null> {
  const collection = peekCollection(app, projectId, to) ?? (await findCollection(app, projectId, to));
  if (!collection) return null;
  if (!referrer) return { collection, referable: null, restricted: new Set() };
  const { restricted } = (await findVisibility(app, collection, referrer.caller)) ?? { restricted: new Set<string>() };
  return { collection, referable: await openReferable(app, collection, referrer.caller), restricted };
}

function isThere(
  { collection, referable, restricted }: Target,
  { text, common }: { text: string; common: Record<string, unknown> },
  exists: Exists,
  read: ReadFields,
): boolean {
  const id = findObjectId(text);
  const name = documentsName(collection);
  const isAdmitted = !referable || referable.admits(id && read(name, id, referable.fields), exists);
  if (!isAdmitted || id === null || Object.keys(common).some((field) => restricted.has(field))) return false;
  if (referable && Object.keys(common).length === 0) return true;
  return exists(name, { _id: id, isDeleted: false, ...common }, true);
}

/** The 400 for more new references than one write may have. */
export function tooManyReferences(): AppError {
  return invalid('TOO_MANY_REFERENCES', `A document can be stored with at most ${MAX_CHECKS} new references at once`);
}

/** The 400 for the id of a document that is not there. */
function referenceMissing(reference: Pick<Reference, 'field' | 'to' | 'same'>): AppError {
  const { field } = reference;
  const message = `${field} ${referenceText(reference)}`;
  return invalid('REFERENCE_MISSING', `Validation failed: ${message}`, {
    details: [{ field, rule: 'check', message }],
  });
}
