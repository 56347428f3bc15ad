import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { isDuplicateKey } from '../../../platform/database/database.js';
import { takeTurns } from '../../../scheduler.js';
import { documentsName, type Collection } from '../collection.js';
import { collectionStore } from '../collection-store.js';
import { isJsonObject } from './field-type.js';
import type { Field, FieldShape } from './field.js';
import { foldChanged } from './nocase.js';

type Values = Record<string, unknown>;
type Stored = Document & { _id: ObjectId };

/** Batch size, in documents. */
const BATCH = 100;

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

/**
 * Gives the stored documents of a collection, those in the trash too, the defaults that its record declares at this
 * moment. Harmless to repeat. A document whose unique value would be taken is left as it is.
 */
export async function fillDefaults(app: App, { _id: id }: Pick<Collection, '_id'>): Promise<void> {
  const turn = takeTurns();
  let after: ObjectId | null = null;
  for (;;) {
    await turn();
    const collection = await collectionStore(app).findOne({ _id: id, state: 'active' }, app.db.confirmedReads);
    const names = [...new Set(collection ? defaultPaths(collection).map((path) => path.split(/[.[]/, 1)[0]!) : [])];
    if (!collection || names.length === 0) return;
    const found: Stored[] = await app.db
      .collection<Stored>(documentsName(collection))
      .find(after === null ? {} : { _id: { $gt: after } })
      .project<Stored>(Object.fromEntries(names.map((name) => [name, 1])))
      .sort({ _id: 1 })
      .limit(BATCH)
      .toArray();
    if (found.length === 0) return;
    after = found.at(-1)!._id;
    const fields = collection.fields.filter(({ name }) => names.includes(name));
    const lacking = found.filter((document) => withDefaults(fields, document) !== document);
    // Together: the database commits them at once.
    await Promise.all(lacking.map(({ _id }) => fillDocument(app, collection, _id)));
  }
}

async function fillDocument(app: App, collection: Collection, id: ObjectId): Promise<void> {
  const now = app.clock.now();
  try {
    await app.db.transform(documentsName(collection), id, (stored) => {
      if (!stored || typeof stored.isDeleted !== 'boolean') return stored;
      const filled = withDefaults(collection.fields, stored);
      if (filled === stored) return stored;
      const updatedAt = new Date(Math.max(now, ((stored.updatedAt as Date | undefined)?.getTime() ?? 0) + 1));
      return foldChanged(collection, stored, { ...filled, updatedAt });
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}
