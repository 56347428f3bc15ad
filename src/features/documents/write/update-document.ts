import type { App } from '../../../app.js';
import { forbidden } from '../../../errors.js';
import { takeTurns } from '../../../turns.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import type { StoredDocument } from '../store/document.js';
import { changeDocumentRecord, documentStore } from '../store/document-store.js';
import { PathBlocked } from '../store/refused-writes.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { validationFailed } from '../reply/problems.js';
import { presentWritten } from './guard-fields.js';
import { runIdempotent } from './idempotency.js';
import { nextVersion, requireVersion } from './if-match.js';
import { planUpdate, type ChangeConditions, type PlannedUpdate } from './plan-update.js';
import { referrerOf } from './settle-place.js';
import type { StoredMoment } from './stored-moment.js';
import { matching, readWritten, writeRuled, type WriteTarget } from './write-target.js';

/**
 * Changes the given fields of an active document and answers it (rest-api.md 4.2, update rules). One atomic write of
 * just these paths: nobody's change to other paths is lost. 400, 403 OWNER_IMMUTABLE, OWNER_MISMATCH, FIELD_FIXED,
 * FIELD_PROTECTED or RULE_REFUSED, 404, 409 DUPLICATE_VALUE, 412 CHANGED_MEANWHILE for another version than the
 * expected one; then nothing has changed. With an idempotency key, repeating the request changes nothing more and
 * answers the document as it is now.
 */
export async function updateDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  body: unknown,
  { idempotencyKey: key = null, ...options }: ChangeConditions & { idempotencyKey?: string | null } = {},
): Promise<PresentedDocument> {
  const plan = (): PlannedUpdate => planUpdate(place, idText, body, app.clock.now(), options);
  if (key === null) return presentWritten(await carryOut(app, place, plan()), place.writer);
  const request = { place, action: 'update' as const, key, body: { id: idText, body } };
  const answer = await runIdempotent(app, request, {
    prepare(requestId) {
      const planned = withMark(plan(), requestId);
      return {
        ids: [planned.id],
        async run([id]) {
          const carriedOut = { $and: [{ _id: id! }, { [MARKS]: requestId }] };
          const isDone = (): Promise<unknown> => documentStore(app, place.collection).findOne(carriedOut);
          return carryOut(app, place, planned, async () => ((await isDone()) ? readWritten(app, place, id!) : null));
        },
      };
    },
    answerAgain: ([id]) => readWritten(app, place, id!),
  });
  return presentWritten(answer, place.writer);
}

/** `earlier` finds the document where another attempt of the same request has changed it. */
function carryOut(
  app: App,
  place: WriteTarget,
  planned: PlannedUpdate,
  earlier: () => Promise<StoredDocument | null> = () => Promise.resolve(null),
): Promise<StoredDocument> {
  const { active, change, own } = planned;
  return writeRuled(
    app,
    place,
    active,
    { action: 'update', change },
    async (filters) =>
      (await writePlanned(app, place, planned, matching(active, [...filters, ...own]))) ?? (await earlier()),
    (found) => explainRefusal(place, planned, found),
  );
}

/** The last requests with an Idempotency-Key that changed a document, in it: noted by the very write they cause. */
const MARKS = `${HIDDEN_FIELD}.requests`;
const MAX_MARKS = 20;

function withMark(planned: PlannedUpdate, requestId: string): PlannedUpdate {
  const { own, record } = planned;
  const mark = { [MARKS]: { $each: [requestId], $slice: -MAX_MARKS } };
  const operators = { ...record.operators, $push: { ...record.operators?.$push, ...mark } };
  return { ...planned, own: [...own, { [MARKS]: { $ne: requestId } }], record: { ...record, operators } };
}

/** Carries a planned update out; null when the stored document does not meet the filter. */
async function writePlanned(
  app: App,
  place: WriteTarget,
  { id, record, expected }: PlannedUpdate,
  filter: PlannedUpdate['active'],
): Promise<StoredDocument | null> {
  const set = { ...record.set, updatedAt: nextVersion(app.clock.now(), id, expected) };
  try {
    const change = { ...record, action: 'update', set } as const;
    return await changeDocumentRecord(app, place.collection, filter, change, referrerOf(place));
  } catch (error) {
    if (error instanceof PathBlocked) return null;
    throw error;
  }
}

/**
 * Throws what the stored document says against the change; returns when it says nothing any more, since it has changed.
 */
export async function explainRefusal(
  { collection, writer }: WriteTarget,
  { change, guarded, expected }: PlannedUpdate,
  { document, meets }: StoredMoment,
): Promise<void> {
  const turn = takeTurns();
  requireVersion(document, expected);
  for (const { filter, refusal } of guarded) if (!meets(filter)) throw refusal();
  if (change.owner) {
    const stored = document[collection.rls!.ownerField] ?? null;
    const assignable = !writer && stored === null && change.owner.value !== null;
    if (stored !== change.owner.value && !assignable) throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
    if (change.owner.value === null) throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
  }
  const broken = [];
  for (const condition of change.conditions) {
    await turn();
    if (meets(condition.filter)) continue;
    if (condition.refusal) throw condition.refusal();
    broken.push(condition.problem);
  }
  if (broken.length > 0) throw validationFailed(broken);
  for (const path of [...Object.keys(change.set), ...change.unset, ...change.results.keys()]) {
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
