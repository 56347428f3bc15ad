import { calculateObjectSize, type Document, type ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid, type AppError } from '../../../errors.js';
import type { AskSet } from '../../access/rules/access-sets.js';
import { filterOf } from '../../access/rules/compile-rule.js';
import { holdsIn } from '../../access/rules/holds-in.js';
import type { Collection } from '../../collections/collection.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import type { DecidedWrite } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { openVersions } from '../store/next-version.js';
import { openMatch, withValues, type ServiceChange } from '../store/service-change.js';
import { grownTooLarge } from '../store/explain-write-error.js';
import { openReferences } from '../store/new-references.js';
import { hookFields } from './ask-hooks.js';
import { requireAdmitted, requireAdmittedAfter } from './admit-write.js';
import { applyChange, readChange, type DocumentChange } from './change.js';
import { fieldProtected } from './guard-fields.js';
import { requireVersion, type ExpectedVersion } from './if-match.js';
import { fieldFixed } from './new-document.js';
import { valueKey } from './operators/value-key.js';
import { documentNotFound, referrerOf, requireDocumentId, type WriteTarget } from './write-target.js';

export interface ChangeConditions {
  /** A change of the service's own by the same write. */
  alongside?: ServiceChange | undefined;
  expected?: ExpectedVersion;
  /** The body may have update operators (writes.md 1). */
  takesOperators?: boolean;
}

/** An update as far as that goes without the stored document. */
export interface ReadUpdate extends ChangeConditions {
  id: ObjectId;
  change: DocumentChange;
}

/**
 * Reads the update that a body asks for. 401 for an anonymous caller, 400 with every problem of the body, 403 for
 * fields that its writer changes in no document.
 */
export function readUpdate(
  place: WriteTarget,
  idText: string,
  body: unknown,
  now: number,
  conditions: ChangeConditions = {},
): ReadUpdate {
  const { collection, writer } = place;
  const id = requireDocumentId(idText);
  for (const name of ['read', 'update', 'updateTo'] as const) writer?.requireKnown(name);
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'The body must be a JSON object');
  const { takesOperators = false } = conditions;
  const change = readChange(collection, id, body, { now, takesOperators });
  rejectParts(place, change);
  return { ...conditions, id, change };
}

/**
 * Prepares the decision about one document: what takes time is asked here, so that the decision itself can be made
 * inside the write. 403 QUOTA_EXCEEDED.
 */
export async function openUpdate(
  app: App,
  place: WriteTarget,
  { id, change, expected = null, alongside }: ReadUpdate,
): Promise<DecidedWrite> {
  const { collection, writer } = place;
  const added = change.steps.map(({ parts, puts }) => [parts.join('.'), puts.length === 1 ? puts[0] : puts] as const);
  await requireRoomFor(app, collection.projectId, { change: Object.fromEntries(added) });
  const named = new Set(change.steps.map(({ parts }) => parts[0]!));
  if (place.hooked) for (const name of hookFields(collection)) named.add(name);
  const sets = await writer?.openSets();
  const references = await openReferences(app, { collection, referrer: referrerOf(place), named });
  const meets = alongside && (await openMatch(alongside.filter));
  const versions = await openVersions(app, collection, 'update');

  return {
    ...{ collection, id, action: 'update' },
    decide(stored, exists, read) {
      if (stored?.isDeleted !== false) throw documentNotFound();
      const ask: AskSet = (...question) => sets!(exists)(...question);
      if (writer) requireAdmitted(writer, 'update', stored, ask);
      requireVersion(stored, expected);
      requireFields(place, change, stored, ask);
      const owner = ownerAfter(place, change, stored);
      if (meets && !meets(stored)) throw changing();
      const changed: StoredDocument = { ...applyChange(change, stored), ...owner };
      if (writer) requireAdmittedAfter(writer, changed, ask);
      references?.require(stored, changed, exists, read);
      const next = versions.next(stored, withValues(changed, alongside?.set ?? {}));
      if (app.db.kind !== 'embedded') requireSize(app, stored, next);
      return next;
    },
    requireFilled(stored, filled, exists, read) {
      if (writer) requireAdmittedAfter(writer, filled, (...question) => sets!(exists)(...question));
      references?.require(stored, filled, exists, read);
      if (app.db.kind !== 'embedded') requireSize(app, stored!, filled);
    },
  };
}

const NEVER_CHANGES = 'is set when the document is stored and cannot be changed';

const isFixed = ({ fields }: Collection, name: string): boolean =>
  fields.some((field) => field.name === name && field.fixed);

/** 403 for a part or an operator of a field that is only compared whole: what it comes to would tell what is hidden. */
function rejectParts({ collection, writer }: WriteTarget, { steps }: DocumentChange): void {
  if (!writer) return;
  for (const { parts, plain } of steps) {
    if (plain && parts.length === 1) continue;
    const [name] = parts as [string];
    if (isFixed(collection, name)) throw fieldFixed(name, NEVER_CHANGES);
    const guarded = writer.fields?.guarded.get(name);
    if (guarded && filterOf(guarded.read) !== null) throw fieldProtected(name);
  }
}

/** 403 unless the rule of each changed field holds, or its writer sees the field and sends it back as it is. */
function requireFields(
  { collection, writer }: WriteTarget,
  { steps }: DocumentChange,
  stored: StoredDocument,
  ask: AskSet,
): void {
  if (!writer) return;
  for (const { parts, plain } of steps) {
    const [name] = parts as [string];
    const guarded = writer.fields?.guarded.get(name);
    const fixed = isFixed(collection, name);
    if (!fixed && (!guarded || guarded.maySet(stored, ask))) continue;
    const isSeen = !guarded || holdsIn(guarded.read, stored);
    if (isSeen && plain && valueKey(valueAt(stored, parts) ?? null) === valueKey(plain.value ?? null)) continue;
    throw fixed ? fieldFixed(name, NEVER_CHANGES) : fieldProtected(name);
  }
}

function valueAt(document: unknown, parts: readonly string[]): unknown {
  return parts.reduce<unknown>(
    (value, part) => (value as Record<string, unknown> | null | undefined)?.[part],
    document,
  );
}

/** The owner stays; only the project may give one to a document that has none. */
function ownerAfter({ collection, writer }: WriteTarget, { owner }: DocumentChange, stored: StoredDocument): Document {
  if (!owner) return {};
  const name = collection.rls!.ownerField;
  const isOpen = !writer && (stored[name] ?? null) === null;
  if (owner.value === null || (stored[name] !== owner.value && !isOpen)) {
    throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
  }
  return { [name]: owner.value };
}

function changing(): AppError {
  return conflict('DOCUMENT_CHANGING', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}

/** The embedded engine looks at that itself. */
function requireSize(app: App, stored: StoredDocument, next: StoredDocument): void {
  const size = calculateObjectSize(next);
  if (size > app.config.documentMaxBytes && size > calculateObjectSize(stored)) throw grownTooLarge();
}
