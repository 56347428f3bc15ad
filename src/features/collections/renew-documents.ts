import { isDeepStrictEqual } from 'node:util';
import { ObjectId, type Document } from 'bson';
import type { App } from '../../app.js';
import { isDuplicateKey } from '../../platform/database/database.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { versionTime } from '../../platform/time/clock.js';
import { takeTurns } from '../../scheduler.js';
import { documentsName, type Collection } from './collection.js';
import { collectionStore } from './collection-store.js';
import { LATE_WRITER_PASSES_MS, nextPass } from './drop-collection.js';
import { isJsonObject } from './fields/field-type.js';
import { HIDDEN_FIELD, type Field, type FieldShape } from './fields/field.js';
import { FOLDED, foldedNames, foldValue, namedPath } from './fields/nocase.js';

interface RenewPayload {
  collectionId: string;
  /** Milliseconds since 1970. */
  begunAt: number;
}

/**
 * Goes over the folded values and the defaults of a collection once more after its fields have changed: a request that
 * began before may have written as the fields were then.
 */
export const renewDocumentsJob: JobDefinition<App, RenewPayload> = {
  name: 'collections.renewDocuments',
  retry: { delaysMs: [5_000, 60_000, 600_000] },
  async run(app, { collectionId, begunAt }) {
    await renewDocuments(app, { _id: new ObjectId(collectionId) });
    return nextPass(app, begunAt);
  },
};

/** Enqueues the passes after a change of which fields are `@nocase` or have a default. */
export async function enqueueRenewal(app: App, { _id }: Pick<Collection, '_id'>): Promise<void> {
  const begunAt = app.clock.now();
  const payload = { collectionId: _id.toHexString(), begunAt };
  await app.jobs.enqueue(renewDocumentsJob, payload, { runAt: new Date(begunAt + LATE_WRITER_PASSES_MS[0]!) });
}

type Values = Record<string, unknown>;
type Stored = Document & { _id: ObjectId };

/** The values with the defaults of those declared fields that they lack; the same object where they lack none. */
function withDefaults<T extends Values>(fields: readonly Field[], values: T): T {
  let filled = values;
  for (const field of fields) {
    const held: unknown = Object.hasOwn(values, field.name) ? values[field.name] : undefined;
    const value = (held ?? null) === null ? field.default : filledShape(field, held);
    if (value !== undefined && value !== held) filled = { ...filled, [field.name]: value };
  }
  return filled;
}

function filledShape({ type, fields, items }: FieldShape, held: unknown): unknown {
  if (type === 'Object' && fields && isJsonObject(held)) return withDefaults(fields, held);
  if (type !== 'Array' || !items || !Array.isArray(held)) return held;
  const filled = held.map((item: unknown) => filledShape(items, item));
  return filled.some((item, at) => item !== held[at]) ? filled : held;
}

/** True where fields have a default in `to` that have none in `from`: stored documents may lack them. */
export function addsDefaults(from: Collection, to: Collection): boolean {
  const known = new Set(defaultPaths(from));
  return defaultPaths(to).some((path) => !known.has(path));
}

function defaultPaths({ mode, fields }: Collection): string[] {
  return mode === 'enforced' ? fields.flatMap((field) => pathsIn(field, field.name, field)) : [];
}

function pathsIn({ fields = [], items }: FieldShape, path: string, { default: preset }: Partial<Field>): string[] {
  return [
    ...(preset === undefined ? [] : [path]),
    ...fields.flatMap((field) => pathsIn(field, `${path}.${field.name}`, field)),
    ...(items ? pathsIn(items, `${path}[]`, {}) : []),
  ];
}

/** Batch size, in documents. */
const BATCH = 100;

/**
 * Gives the stored documents of a collection, those in the trash too, the defaults and the folded values that its
 * record asks for at this moment, and takes all other folded values away. Harmless to repeat. A document that would
 * share a unique value by its defaults gets none; one that would by its folded values stays as it is, and the log names
 * it.
 */
export async function renewDocuments(app: App, { _id: id }: Pick<Collection, '_id'>): Promise<void> {
  const turn = takeTurns();
  let after: ObjectId | null = null;
  for (;;) {
    await turn();
    // Each time: another change of the collection may have come between.
    const collection = await collectionStore(app).findOne({ _id: id, state: 'active' }, app.db.confirmedReads);
    if (!collection) return;
    const preset = defaultPaths(collection).map((path) => path.split(/[.[]/, 1)[0]!);
    const names = [...foldedNames(collection), ...preset];
    const found: Stored[] = await app.db
      .collection<Stored>(documentsName(collection))
      .find({
        ...(after !== null && { _id: { $gt: after } }),
        ...(names.length === 0 && { [FOLDED]: { $exists: true } }),
      })
      .project<Stored>(Object.fromEntries([...names, FOLDED, 'isDeleted'].map((path) => [path, 1])))
      .sort({ _id: 1 })
      .limit(BATCH)
      .toArray();
    if (found.length === 0) return;
    after = found.at(-1)!._id;
    const old = found.filter((document) => renewed(collection, document) !== document);
    // Together: the database commits them at once.
    await Promise.all(old.map(({ _id }) => renewDocument(app, collection, _id)));
  }
}

async function renewDocument(app: App, collection: Collection, id: ObjectId, fills = true): Promise<void> {
  const now = app.clock.now();
  try {
    await app.db.transform(documentsName(collection), id, (stored) => {
      const next = stored && renewed(collection, stored, fills);
      if (!stored || next === stored || !fills || !lacksDefaults(collection, stored)) return next;
      return { ...next, updatedAt: versionTime(stored, now) };
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    if (fills) return renewDocument(app, collection, id, false);
    app.log.warn(
      {
        project: collection.projectId.toHexString(),
        collection: collection.name,
        document: id.toHexString(),
        fields: Object.keys(error.keyPattern ?? {}).map(namedPath),
      },
      'a document that was stored while fields became @nocase shares their unique value with another one',
    );
  }
}

const lacksDefaults = ({ mode, fields }: Collection, stored: Values): boolean =>
  mode === 'enforced' && withDefaults(fields, stored) !== stored;

/** The document as the record asks for it; the same object where it is so. `fills`: with its defaults. */
function renewed<T extends Values>(collection: Collection, stored: T, fills = true): T {
  if (typeof stored.isDeleted !== 'boolean') return stored;
  const filled = fills && collection.mode === 'enforced' ? withDefaults(collection.fields, stored) : stored;
  const names = foldedNames(collection);
  const { nocase: held, ...notes } = (stored[HIDDEN_FIELD] ?? {}) as { nocase?: Values };
  const there = names.filter((name) => filled[name] !== undefined);
  const nocase = Object.fromEntries(there.map((name) => [name, foldValue(filled[name])]));
  const isFolded = isDeepStrictEqual(held ?? {}, nocase) && (names.length > 0 || held === undefined);
  if (isFolded) return filled;
  return { ...filled, [HIDDEN_FIELD]: names.length > 0 ? { ...notes, nocase } : notes };
}
