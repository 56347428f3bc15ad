import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { findObjectId } from '../../../platform/ids.js';
import { documentsName, type Collection } from '../collection.js';
import { findCollection } from '../collection-store.js';
import { Violations } from '../fields/constraints/constraint-violations.js';
import { referencesOf, referenceText, type Reference } from './reference.js';

const BATCH = 500;

/**
 * 409 CONSTRAINT_VIOLATIONS with the number and ten ids when stored documents do not meet references that `to` begins
 * to check. Reads the active ones, in batches; changes nothing. What others store during it is not seen.
 */
export async function requireNoReferenceViolations(app: App, from: Collection, to: Collection): Promise<void> {
  const known = referencesOf(from);
  const added = referencesOf(to).filter(
    ({ field, to, same }) =>
      !known.some((other) => other.field === field && other.to === to && isDeepStrictEqual(other.same, same)),
  );
  if (added.length === 0) return;
  const names = ['_id', ...added.flatMap(({ field, same }) => [field, ...same])];
  const projection = Object.fromEntries(names.map((name) => [name, 1]));
  const stored = app.db.collection<Document>(documentsName(to)).find({ isDeleted: false }, { projection });
  const found = new Violations();
  let batch: Document[] = [];
  const judge = async (): Promise<void> => {
    for (const [{ _id }, message] of await findViolations(app, to, added, batch)) found.add(String(_id), message);
    batch = [];
  };
  for await (const document of stored) {
    batch.push(document);
    if (batch.length === BATCH) await judge();
  }
  await judge();
  found.throwIfAny(to.name);
}

async function findViolations(
  app: App,
  to: Collection,
  references: readonly Reference[],
  documents: readonly Document[],
): Promise<Map<Document, string>> {
  const messages = new Map<Document, string>();
  for (const reference of references) {
    const { field, same } = reference;
    const valuesOf = (document: Document): unknown[] =>
      [document[field] as unknown].flat().filter((value) => value !== undefined && value !== null);
    const here = await findThere(app, to, reference, documents.flatMap(valuesOf));
    for (const document of documents) {
      const isHere = (value: unknown): boolean => {
        const target = here.get(value);
        return target !== undefined && same.every((name) => hasSame(target, document, name));
      };
      if (messages.has(document) || valuesOf(document).every(isHere)) continue;
      messages.set(document, `${field} ${referenceText(reference)}, in lower case`);
    }
  }
  return messages;
}

const hasSame = (target: Document, document: Document, name: string): boolean =>
  isDeepStrictEqual(target[name] ?? null, document[name] ?? null);

/** The active documents whose ids are among the values, by these. */
async function findThere(
  app: App,
  to: Collection,
  reference: Reference,
  values: unknown[],
): Promise<Map<unknown, Document>> {
  const texts = values.filter((value) => typeof value === 'string');
  const ids = texts.map(findObjectId).filter((id) => id !== null);
  const target = reference.to === to.name ? to : await findCollection(app, to.projectId, reference.to);
  if (!target || ids.length === 0) return new Map();
  const found = await app.db
    .collection<Document>(documentsName(target))
    .find({ _id: { $in: ids }, isDeleted: false })
    .project(Object.fromEntries(['_id', ...reference.same].map((name) => [name, 1])))
    .toArray();
  return new Map(found.map((document) => [String(document._id), document]));
}
