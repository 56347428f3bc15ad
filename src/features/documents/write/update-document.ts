import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { forbidden, invalid } from '../../../errors.js';
import { NOTHING } from '../../access/rules/compile-rule.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import type { StoredDocument } from '../store/document.js';
import { readDocumentChange, type DocumentChange } from '../store/document-change.js';
import { changeDocumentRecord, documentStore } from '../store/document-store.js';
import { PathBlocked } from '../store/refused-writes.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { validationFailed } from '../reply/problems.js';
import { nextVersion, requireVersion, versionFilter, type ExpectedVersion } from './if-match.js';
import { guardChange, presentWritten, sameFilter, type FieldCondition } from './guard-fields.js';
import { fieldFixed } from './new-document.js';
import { matching, requireDocumentId, writeRuled, type WriteTarget } from './write-target.js';

/** A condition and paths of the service's own for the write of a client's change. */
export interface AlongsideChange {
  filter: Record<string, unknown>;
  set: Record<string, unknown>;
}

/**
 * Changes the given fields of an active document and answers it (rest-api.md 4.2, update rules). One atomic write of
 * just these paths: nobody's change to other paths is lost. 400, 403 OWNER_IMMUTABLE, OWNER_MISMATCH, FIELD_FIXED,
 * FIELD_PROTECTED or RULE_REFUSED, 404, 409 DUPLICATE_VALUE, 412 CHANGED_MEANWHILE for another version than the
 * expected one; then nothing has changed.
 */
export async function updateDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  body: unknown,
  { alongside, expected = null }: { alongside?: AlongsideChange; expected?: ExpectedVersion } = {},
): Promise<PresentedDocument> {
  const { collection } = place;
  const id = requireDocumentId(idText);
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'The body must be a JSON object');
  const change = readDocumentChange(collection, id, body, app.clock.now());
  const guarded = [...takeFixed(place, change), ...guardChange(place.writer, change)];
  const active = { _id: id, isDeleted: false };
  const own = [
    ...ownerFilter(place, change),
    ...guarded.map(({ filter }) => filter),
    ...change.conditions.map(({ filter }) => filter),
  ];
  if (alongside) own.push(alongside.filter);
  if (expected) own.push(versionFilter(expected));
  const set = { ...withOwner(place, change), ...alongside?.set };
  const write = async (filters: readonly Document[]): Promise<StoredDocument | null> => {
    set.updatedAt = nextVersion(app.clock.now(), expected);
    try {
      const record = { action: 'update' as const, set, unset: change.unset };
      return await changeDocumentRecord(app, collection, matching(active, [...filters, ...own]), record);
    } catch (error) {
      if (error instanceof PathBlocked) return null;
      throw error;
    }
  };
  const explain = (found: StoredDocument): Promise<void> =>
    explainRefusal(app, place, active, found, { change, guarded, expected });
  const written = await writeRuled(app, place, active, { action: 'update', change }, write, explain);
  return presentWritten(written, place.writer);
}

/** Takes the fields out of a change that end users cannot change: they may be sent back as they are. */
function takeFixed({ collection, writer }: WriteTarget, { set, unset }: DocumentChange): FieldCondition[] {
  const names = writer ? collection.fields.filter(({ fixed }) => fixed).map(({ name }) => name) : [];
  if (names.length === 0) return [];
  const sent: FieldCondition[] = [];
  for (const key of [...Object.keys(set), ...unset]) {
    const field = key.split('.')[0]!;
    if (!names.includes(field)) continue;
    if (key !== field) throw fieldFixed(field, NEVER_CHANGES);
    const same = sameFilter(writer?.fields?.guarded.get(field), key, Object.hasOwn(set, key) ? set[key] : null);
    sent.push({ filter: same, refusal: () => fieldFixed(field, NEVER_CHANGES) });
    delete set[key];
    if (unset.includes(key)) unset.splice(unset.indexOf(key), 1);
  }
  return sent;
}

const NEVER_CHANGES = 'is set when the document is stored and cannot be changed';

function ownerFilter({ collection, writer }: WriteTarget, { owner }: DocumentChange): Record<string, unknown>[] {
  if (!owner) return [];
  if (owner.value === null) return [NOTHING];
  // Only the secret key may give an owner to a document that has none.
  const stored = writer ? owner.value : { $in: [owner.value, null] };
  return [{ [collection.rls!.ownerField]: stored }];
}

function withOwner({ collection, writer }: WriteTarget, change: DocumentChange): Record<string, unknown> {
  if (writer || !change.owner) return { ...change.set };
  return { ...change.set, [collection.rls!.ownerField]: change.owner.value };
}

interface WantedChange {
  change: DocumentChange;
  guarded: readonly FieldCondition[];
  expected: ExpectedVersion;
}

/**
 * Throws what the stored document says against the change; returns when it says nothing any more, since it has changed
 * meanwhile.
 */
async function explainRefusal(
  app: App,
  place: WriteTarget,
  active: Record<string, unknown>,
  document: StoredDocument,
  { change, guarded, expected }: WantedChange,
): Promise<void> {
  const { collection, writer } = place;
  const holds = (filter: Document): Promise<unknown> =>
    documentStore(app, collection).findOne({ $and: [active, filter] }, { projection: { _id: 1 } });
  requireVersion(document, expected);
  for (const { filter, refusal } of guarded) if (!(await holds(filter))) throw refusal();
  if (change.owner) {
    const stored = document[collection.rls!.ownerField] ?? null;
    const assignable = !writer && stored === null && change.owner.value !== null;
    if (stored !== change.owner.value && !assignable) throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
    if (change.owner.value === null) throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
  }
  for (const { filter, problem } of change.conditions) {
    if (!(await holds(filter))) throw validationFailed([problem]);
  }
  for (const path of [...Object.keys(change.set), ...change.unset]) {
    const parent = findBlockedParent(document, path);
    if (parent === null) continue;
    const message = `${path} cannot be set: ${parent} is not an object`;
    throw validationFailed([{ field: path, rule: 'path', message }]);
  }
}

/** The part of a path that leads nowhere in this document, or null. */
function findBlockedParent(document: Record<string, unknown>, path: string): string | null {
  const parts = path.split('.');
  let value: unknown = document;
  for (let at = 0; at < parts.length; at++) {
    if (value === undefined) return null;
    const part = parts[at]!;
    const passable = isJsonObject(value) || (Array.isArray(value) && /^\d+$/.test(part));
    if (!passable) return parts.slice(0, at).join('.');
    value = (value as Record<string, unknown>)[part];
  }
  return null;
}
