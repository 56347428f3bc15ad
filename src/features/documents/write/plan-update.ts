import type { Document, ObjectId } from 'bson';
import { invalid } from '../../../errors.js';
import { NOTHING } from '../../access/rules/compile-rule.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import type { RecordChange } from '../store/record-update.js';
import { readDocumentChange, type DocumentChange } from './document-change.js';
import { guardChange, sameFilter, type FieldCondition } from './guard-fields.js';
import { versionFilter, type ExpectedVersion } from './if-match.js';
import { fieldFixed } from './new-document.js';
import { requireDocumentId, type WriteTarget } from './write-target.js';

/** A condition and paths of the service's own for the write of a client's change. */
export interface AlongsideChange {
  filter: Record<string, unknown>;
  set: Record<string, unknown>;
}

export interface ChangeConditions {
  alongside?: AlongsideChange | undefined;
  expected?: ExpectedVersion;
  /** The body may have update operators (writes.md 1). */
  takesOperators?: boolean;
}

/** An update, read and checked as far as that goes without the stored document: one conditional write of it. */
export interface PlannedUpdate {
  id: ObjectId;
  active: { _id: ObjectId; isDeleted: false };
  /** What the stored document must meet beside what rules ask of it. */
  own: readonly Document[];
  /** What changes, but for the moment of it. */
  record: Omit<RecordChange, 'action'>;
  change: DocumentChange;
  guarded: readonly FieldCondition[];
  expected: ExpectedVersion;
}

/**
 * Plans the change of an active document that a body asks for. Pure; throws 400 with every problem of the body, 403
 * FIELD_FIXED, FIELD_PROTECTED or OWNER_IMMUTABLE.
 */
export function planUpdate(
  place: WriteTarget,
  idText: string,
  body: unknown,
  now: number,
  { alongside, expected = null, takesOperators = false }: ChangeConditions,
): PlannedUpdate {
  const { collection } = place;
  const id = requireDocumentId(idText);
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'The body must be a JSON object');
  const change = readDocumentChange(collection, id, body, { now, takesOperators });
  const guarded = [...takeFixed(place, change), ...guardChange(place.writer, change)];
  const own = [
    ...ownerFilter(place, change),
    ...guarded.map(({ filter }) => filter),
    // The filter of a quick one is made only where a refusal has to be explained.
    ...change.conditions.map((condition) => condition.quick ?? condition.filter),
  ];
  if (alongside) own.push(alongside.filter);
  if (expected) own.push(versionFilter(expected));
  const set = { ...withOwner(place, change), ...alongside?.set };
  const record = { set, unset: change.unset, operators: change.operators };
  return { id, active: { _id: id, isDeleted: false }, own, record, change, guarded, expected };
}

/** Takes the fields out of a change that end users cannot change: they may be sent back as they are. */
function takeFixed({ collection, writer }: WriteTarget, { set, unset, results }: DocumentChange): FieldCondition[] {
  const names = writer ? collection.fields.filter(({ fixed }) => fixed).map(({ name }) => name) : [];
  if (names.length === 0) return [];
  const sent: FieldCondition[] = [];
  for (const key of [...results.keys(), ...Object.keys(set), ...unset]) {
    const field = key.split('.')[0]!;
    if (!names.includes(field)) continue;
    if (key !== field || results.has(key)) throw fieldFixed(field, NEVER_CHANGES);
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
