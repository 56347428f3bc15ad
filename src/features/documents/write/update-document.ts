import { type Document, type ObjectId, calculateObjectSize } from 'bson';
import type { App } from '../../../app.js';
import { forbidden, invalid } from '../../../errors.js';
import { whenKnown } from '../../../platform/when-known.js';
import { type AskSet, NO_SETS } from '../../access/rules/access-sets.js';
import { filterOf } from '../../access/rules/compile-rule.js';
import { holdsIn } from '../../access/rules/holds-in.js';
import type { Collection } from '../../collections/collection.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { findListeners } from '../../webhooks/events/queue-events.js';
import type { PresentedDocument } from '../reply/present-document.js';
import type { DecidedWrite } from '../store/commit-writes.js';
import { nextVersion, type StoredDocument } from '../store/document.js';
import { grownTooLarge } from '../store/explain-write-error.js';
import { openReferences } from '../store/new-references.js';
import { requireAdmitted, requireAdmittedAfter, fieldProtected, presentWritten } from './admit-write.js';
import { isHookField } from './ask-hooks.js';
import { type DocumentChange, applyChange, readChange } from './change.js';
import { type ExpectedVersion, requireVersion } from './if-match.js';
import { fieldFixed } from './new-document.js';
import { valueKey } from './value-key.js';
import { writeOne } from './idempotency.js';
import { type WriteTarget, documentNotFound, readWritten, requireDocumentId } from './write-target.js';

/**
 * Changes the given fields of an active document and answers it (rest-api.md 4.2, update rules): read, changed, judged
 * and stored as one, so that concurrent changes are not lost. 400, 403 OWNER_IMMUTABLE, OWNER_MISMATCH, FIELD_FIXED,
 * FIELD_PROTECTED or RULE_REFUSED, 404, 409 DUPLICATE_VALUE, 412 CHANGED_MEANWHILE for another version than the
 * expected one; then nothing has changed. With an idempotency key, repeating the request changes nothing more and
 * answers the document as it is now.
 */
export async function updateDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  body: unknown,
  conditions: ChangeConditions & { idempotencyKey?: string | null } = {},
): Promise<PresentedDocument> {
  const { idempotencyKey: key = null } = conditions;
  const request = { place, action: 'update' as const, key, body: { id: idText, body } };
  const { done, again } = await writeOne(app, request, () =>
    openUpdate(app, place, readUpdate(place, idText, body, app.clock.now(), conditions)),
  );
  return presentWritten(done ? done.after! : await readWritten(app, place, again[0]!), place.writer);
}

export interface ChangeConditions {
  expected?: ExpectedVersion | undefined;
  /** The body may have update operators (writes.md 1). */
  takesOperators?: boolean;
}

/** An update as far as that goes without the stored document. */
export interface ReadUpdate extends Pick<ChangeConditions, 'expected'> {
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
  const { expected, takesOperators = false } = conditions;
  const change = readChange(collection, id, body, { now, takesOperators });
  rejectParts(place, change);
  return { id, change, expected };
}

/**
 * Prepares the decision about one document: what takes time is asked here, so that the decision itself can be made
 * inside the write. 403 QUOTA_EXCEEDED. A promise only when it takes time.
 */
export function openUpdate(app: App, place: WriteTarget, update: ReadUpdate): DecidedWrite | Promise<DecidedWrite> {
  const { collection, writer } = place;
  const { id, change, expected = null } = update;
  const named = (name: string): boolean =>
    change.steps.some(({ parts }) => parts[0] === name) ||
    (change.owner !== null && name === collection.rls?.ownerField) ||
    isHookField(place, name);
  const asked = [
    requireRoomFor(app, collection.projectId, { change: addedBy(change) }),
    openReferences(app, { collection, referrer: place.referrer ?? writer, named }),
    findListeners(app, collection, 'update'),
    writer?.hasSets ? writer.openSets() : NO_SETS,
  ] as const;
  return whenKnown(asked, ([, references, listeners, sets]): DecidedWrite => ({
    collection,
    id,
    action: 'update',
    listeners,
    decide(stored, exists, read, fill) {
      if (stored?.isDeleted !== false) throw documentNotFound();
      const ask = sets(exists);
      if (writer) requireAdmitted(writer, 'update', stored, ask);
      requireVersion(stored, expected);
      requireFields(place, change, stored, ask);
      const owner = ownerAfter(place, change, stored);
      const applied = applyChange(change, stored);
      if (owner) applied[owner.name] = owner.value;
      const changed = fill ? fill(applied) : applied;
      if (writer) requireAdmittedAfter(writer, changed, ask);
      references?.require(stored, changed, exists, read);
      const next = nextVersion(app, collection, stored, changed);
      requireSize(app, stored, next);
      return next;
    },
  }));
}

/** The values that the change may put, by their paths. */
function addedBy({ steps }: DocumentChange): Document {
  const added: Document = {};
  for (const { path, puts } of steps) added[path] = puts.length === 1 ? puts[0] : puts;
  return added;
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
function ownerAfter(
  { collection, writer }: WriteTarget,
  { owner }: DocumentChange,
  stored: StoredDocument,
): { name: string; value: string } | null {
  if (!owner) return null;
  const name = collection.rls!.ownerField;
  const isOpen = !writer && (stored[name] ?? null) === null;
  if (owner.value === null || (stored[name] !== owner.value && !isOpen)) {
    throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
  }
  return { name, value: owner.value };
}

/** The embedded engine looks at that itself. */
function requireSize(app: App, stored: StoredDocument, next: StoredDocument): void {
  if (app.db.kind === 'embedded') return;
  const size = calculateObjectSize(next);
  if (size > app.config.documentMaxBytes && size > calculateObjectSize(stored)) throw grownTooLarge();
}
