import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { mapInTurns } from '../../../scheduler.js';
import { findObjectId } from '../../../platform/ids.js';
import { findVisibility, readFilter, type AccessFilter } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import type { FieldVisibility } from '../../access/rules/field-visibility.js';
import { exceedsSetLimit, MAX_SETS } from '../../access/rules/access-sets.js';
import type { Collection } from '../../collections/collection.js';
import { findCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { documentStore } from '../store/document-store.js';
import type { Presentation } from '../query/parse-list-query.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';
import { decodeStored } from '../reply/encode-document.js';
import { redactRow } from '../reply/redact-fields.js';
import { listError } from '../reply/query-errors.js';
import { badQuery, quoted } from '../reply/query-text.js';
import { readRows, type ReplySize } from '../reply/reply-size.js';
import { visibleDocuments } from '../store/document.js';
import { projectionOf } from '../reply/select-fields.js';

/** Distinct documents that one request may pull in from one collection. */
const MAX_POPULATED = 5_000;

/** A collection that documents are populated from, and what of it the caller may read. */
export interface PopulatedCollection {
  collection: Collection;
  /** Of the Ref fields that name its documents. */
  paths: readonly string[];
  readable: AccessFilter;
  visibility: FieldVisibility | null;
}

/**
 * Replaces, inside the given documents, each identifier at the populated paths by the document it names; one read per
 * collection. A document that is gone, trashed or not the caller's stays an identifier, so that these cases cannot be
 * distinguished; of users only public fields are shown. 401 when a private collection is populated without a user, as
 * when it is read directly. Each document counts in `size` wherever it is put.
 */
export async function populateDocuments(
  app: App,
  caller: Caller,
  { collection: own, documents }: { collection: Collection; documents: readonly PresentedDocument[] },
  query: Presentation,
  size: ReplySize,
): Promise<void> {
  await populateFrom(app, await openPopulated(app, caller, own, query), documents, query, size);
}

/** The collections that a query populates from. 400 INVALID_QUERY for one that does not exist, 401 as for lists. */
export async function openPopulated(
  app: App,
  caller: Caller,
  own: Collection,
  { populate, includeDeleted }: Pick<Presentation, 'populate' | 'includeDeleted'>,
): Promise<PopulatedCollection[]> {
  const joined = new Map<string, Collection>();
  for (const { ref } of populate) {
    const collection = await findCollection(app, caller.project._id, ref);
    if (!collection) throw badQuery(`populate: the collection ${quoted(ref)} does not exist`);
    joined.set(ref, collection);
  }
  if (exceedsSetLimit([own, ...joined.values()], caller, includeDeleted)) {
    throw badQuery(
      `populate: the rules of these collections name more than ${MAX_SETS} sets together: populate fewer at once`,
    );
  }
  const opened: PopulatedCollection[] = [];
  for (const [ref, collection] of joined) {
    opened.push({
      collection,
      paths: populate.filter((populated) => populated.ref === ref).map(({ path }) => path),
      // Of users everyone sees the public fields, and nothing else.
      readable: collection.name === USERS ? null : await readFilter(app, collection, caller, { trash: includeDeleted }),
      visibility: await findVisibility(app, collection, caller),
    });
  }
  return opened;
}

/** populateDocuments from collections that have been opened, by what could be read of them then. */
export async function populateFrom(
  app: App,
  populated: readonly PopulatedCollection[],
  documents: readonly PresentedDocument[],
  query: Pick<Presentation, 'includeDeleted' | 'meta'>,
  size: ReplySize,
): Promise<void> {
  for (const from of populated) {
    const paths = from.paths.map((path) => path.split('.'));
    const ids = new Set<string>();
    for (const document of documents) {
      for (const path of paths) replaceAt(document, path, (id) => (ids.add(id.toLowerCase()), id));
    }
    if (ids.size > MAX_POPULATED) {
      throw badQuery(
        `populate would pull in more than ${MAX_POPULATED} documents of ${quoted(from.collection.name)}: use a smaller limit`,
      );
    }
    const read = size.beside();
    try {
      const found = await findReadable(app, from, [...ids], query, read);
      for (const document of documents) {
        for (const path of paths) {
          replaceAt(document, path, (id) => {
            const populated = found.get(id.toLowerCase());
            if (!populated) return id;
            size.add(populated.bytes);
            return populated.document;
          });
        }
      }
    } finally {
      read.release();
    }
  }
}

interface Populated {
  document: PresentedDocument;
  bytes: number;
}

async function findReadable(
  app: App,
  { collection, readable, visibility }: PopulatedCollection,
  ids: readonly string[],
  { includeDeleted, meta }: Pick<Presentation, 'includeDeleted' | 'meta'>,
  size: ReplySize,
): Promise<Map<string, Populated>> {
  const isUsers = collection.name === USERS;
  if (ids.length === 0) return new Map();
  const wanted = { _id: { $in: ids.map((id) => new ObjectId(id)) } };
  const visible = visibleDocuments(includeDeleted);
  const cursor = documentStore(app, collection)
    .find(
      { $and: [...(readable ? [readable] : []), wanted, visible] },
      { raw: true, batchSize: ids.length + 1, batchBytes: size.batchBytes },
    )
    .maxTimeMS(app.config.queryTimeoutMs);
  try {
    const shown = isUsers ? cursor.project(projectionOf(publicFields(collection))) : cursor;
    const rows = await readRows(shown, size, (row) => redactRow(row, visibility));
    const tenant = { project: collection.projectId.toHexString(), address: '' };
    const populated = await mapInTurns(
      rows,
      (row) => ({ document: presentDocument(decodeStored(row), meta && !isUsers), bytes: row.length }),
      tenant,
    );
    return new Map(populated.map((each) => [each.document._id, each]));
  } catch (error) {
    throw listError(error);
  }
}

function publicFields(users: Collection): string[] {
  return users.fields.filter((field) => field.public && field.name !== 'password').map(({ name }) => name);
}

/** Puts `replace(id)` in place of every identifier at the path, through arrays at any level of it. */
function replaceAt(holder: Record<string, unknown>, path: readonly string[], replace: (id: string) => unknown): void {
  const [part, ...rest] = path as [string, ...string[]];
  if (!Object.hasOwn(holder, part)) return;
  if (rest.length === 0) holder[part] = replaceIds(holder[part], replace);
  else forEachObject(holder[part], (inner) => replaceAt(inner, rest, replace));
}

function replaceIds(value: unknown, replace: (id: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => replaceIds(item, replace));
  return typeof value === 'string' && findObjectId(value) ? replace(value) : value;
}

function forEachObject(value: unknown, visit: (inner: Record<string, unknown>) => void): void {
  if (Array.isArray(value)) for (const item of value) forEachObject(item, visit);
  else if (typeof value === 'object' && value !== null) visit(value as Record<string, unknown>);
}
