import type { Document } from 'bson';
import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import type { Field, FieldShape } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { USERS } from '../../collections/users-collection.js';
import type { Project } from '../../projects/project.js';
import { allOf } from '../query/keyset-filter.js';
import { documentStore } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';

const BATCH_SIZE = 500;

/** The memory that an export may hold at a time: a batch, and its documents. */
const EXPORT_BYTES = 32 * 1024 * 1024;

export interface ExportOptions {
  includeDeleted: boolean;
  /** All of them have to hold. */
  conditions?: readonly Document[];
  /** Aborted when the client disconnects. */
  signal?: AbortSignal;
}

/**
 * exportDocuments for sending, with room of the budget for a batch until `release`. 503 BUSY when too many large
 * replies are under way.
 */
export async function readExport(
  app: App,
  project: Pick<Project, '_id'>,
  collection: Collection,
  options: ExportOptions,
): Promise<{ documents: AsyncIterable<PresentedDocument>; release: () => void }> {
  const tenant = { project: project._id.toHexString(), address: '' };
  const held = app.replies.within(tenant, EXPORT_BYTES);
  await app.replies.take(tenant, held, options.signal);
  return { documents: exportDocuments(app, collection, options), release: () => app.replies.giveBack(tenant, held) };
}

/** Fields with a default that a document does not have, as null: left out, an import would fill in the default. */
function withNulls<T extends Record<string, unknown>>(fields: readonly Field[], document: T): T {
  let own = document;
  for (const field of fields) {
    const value = Object.hasOwn(document, field.name) ? document[field.name] : undefined;
    const whole = value === undefined && field.default !== undefined ? null : withInnerNulls(field, value);
    if (whole !== value) own = { ...own, [field.name]: whole };
  }
  return own;
}

function withInnerNulls({ fields, items }: FieldShape, value: unknown): unknown {
  if (fields && isJsonObject(value)) return withNulls(fields, value);
  if (!items || !Array.isArray(value)) return value;
  const whole = value.map((item) => withInnerNulls(items, item));
  return whole.some((item, at) => item !== value[at]) ? whole : value;
}

/**
 * The documents of a collection that match, in the order of their ids, one at a time; with the trash when asked. Of
 * `users`, password hashes are left out.
 */
export async function* exportDocuments(
  app: App,
  collection: Collection,
  { includeDeleted, conditions = [], signal }: ExportOptions,
): AsyncGenerator<PresentedDocument> {
  const visible = visibleDocuments(includeDeleted);
  const filter = allOf([visible, ...conditions]);
  const cursor = documentStore(app, collection).find(filter, { signal }).sort({ _id: 1 }).batchSize(BATCH_SIZE);
  for await (const document of cursor) {
    const presented = presentDocument(document);
    if (collection.name === USERS) delete presented.password;
    yield collection.mode === 'enforced' ? withNulls(collection.fields, presented) : presented;
  }
}
