import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, invalid } from '../../../errors.js';
import type { EndWriter } from '../../access/access-rules.js';
import type { Collection } from '../../collections/collection.js';
import { comparedPath, comparedValue } from '../../collections/fields/nocase.js';
import { readUnique } from '../../collections/fields/unique.js';
import { Problems } from '../reply/problems.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { type DecidedWrite, commitWrite, lookAt } from '../store/commit-writes.js';
import { documentStore } from '../store/document-store.js';
import { type StoredDocument, visibleDocuments } from '../store/document.js';
import { changing } from '../store/explain-write-error.js';
import { presentWritten, requireAdmitted } from './admit-write.js';
import { askHooks } from './ask-hooks.js';
import { applyChange, readChange } from './change.js';
import { executeOnce } from './idempotency.js';
import { openInsert } from './insert-document.js';
import { readNewDocument, withWriter } from './new-document.js';
import { valueKey } from './value-key.js';
import { openUpdate, readUpdate } from './update-document.js';
import { type WriteTarget, readWritten } from './write-target.js';

/** A document that others, or the batch before it, store, change or remove is looked for again. */
const MAX_ATTEMPTS = 20;

/**
 * Updates the active document that has the body's values of the fields `by`, else inserts one (writes.md 4), under the
 * rules of what it turns out to be. 400 INVALID_KEY unless these fields are unique, 409 DUPLICATE_VALUE where the
 * document is one that the writer may not read.
 */
export async function insertOrUpdate(
  app: App,
  place: WriteTarget,
  by: readonly string[],
  body: Record<string, unknown>,
  key: string | null,
): Promise<{ isNew: boolean; document: PresentedDocument }> {
  const { writer, hooked } = place;
  requireUnique(place.collection, by);
  const request = { place, action: 'upsert' as const, key, body: { by, body } };
  const { done, again } = await executeOnce(app, request, (mark) =>
    untilFound(async (opened, unseen) => {
      const upsert = await openUpsert(app, place, { by, body }, { earlier: [], unseen });
      opened.push(upsert);
      const { write } = upsert;
      const [asked] = askHooks(app, hooked, [write], { isOne: true, idempotencyKey: key });
      const { after } = await commitWrite(app, asked!, await mark([write.id]));
      return { isNew: write.action === 'insert', after };
    }),
  );
  const after = done ? done.after! : await readWritten(app, place, again[0]!);
  return { isNew: done?.isNew ?? false, document: presentWritten(after, writer) };
}

/** 400 INVALID_KEY unless at most one active document of the collection can have the same values of the fields. */
function requireUnique({ name, mode, fields, uniques = [] }: Collection, by: readonly string[]): void {
  const isOne = by.length === 1 && fields.some((field) => field.name === by[0] && field.unique);
  const isSet = (names: readonly string[]): boolean =>
    names.length === by.length && names.every((each) => by.includes(each));
  const isUnique = uniques
    .map(readUnique)
    .some((unique) => Object.keys(unique.where).length === 0 && isSet(unique.fields));
  if (mode === 'enforced' && (isOne || isUnique)) return;
  throw invalid(
    'INVALID_KEY',
    `An upsert needs a unique field of ${name}, or a set of fields that are unique together`,
  );
}

/** What an upsert asks for. */
interface Upsert {
  by: readonly string[];
  body: Record<string, unknown>;
}

/** What is known around an upsert: what precedes it in its batch, and documents that its writer may not read. */
interface Around {
  earlier: readonly Earlier[];
  unseen: Set<string>;
}

/** A write of the same batch, and the document that it leaves: null for none, undefined until that is known. */
export interface Earlier {
  write: DecidedWrite;
  left: () => StoredDocument | null | undefined;
}

export interface OpenedUpsert {
  write: DecidedWrite;
  /** The document of an insert. */
  document?: StoredDocument;
  /** Whether another document has the key by now, or none. */
  hasMoved: () => Promise<boolean>;
}

/**
 * The decision to insert or to update, by whether there is a document with the key. One that the writer may not read is
 * none: the insert is refused as without `upsert`.
 */
export async function openUpsert(
  app: App,
  place: WriteTarget,
  { by, body }: Upsert,
  { earlier, unseen }: Around,
): Promise<OpenedUpsert> {
  const { collection, writer } = place;
  const now = app.clock.now();
  requireUnique(collection, by);
  if (writer && !writer.userId) requireSomeWrite(writer);
  const key = readKey(place, { by, body }, now);
  const holds = (document: StoredDocument): boolean =>
    key.every(([name, value]) => valueKey(comparedValue(collection, name, document[name])) === valueKey(value));
  const values = Object.fromEntries(key.map(([name, value]) => [comparedPath(collection, name), value]));
  const own = earlier.filter(({ write }) => write.collection._id.equals(collection._id));
  const find = async (): Promise<ObjectId | undefined> => {
    const left = new Map<string, StoredDocument | null>();
    for (const each of own) {
      const document = each.left();
      if (document !== undefined) left.set(String(each.write.id), document);
    }
    for (const [id, document] of left) {
      if (document?.isDeleted === false && holds(document) && !unseen.has(id)) return document._id;
    }
    const filter = { ...values, ...visibleDocuments() };
    const stored = (await documentStore(app, collection).findOne(filter, { projection: { _id: 1 } }))?._id;
    return stored && !left.has(String(stored)) && !unseen.has(String(stored)) ? stored : undefined;
  };
  const id = await find();
  let isUnseen = false;
  const hasMoved = async (): Promise<boolean> => isUnseen || String(await find()) !== String(id);
  const insert = async (): Promise<OpenedUpsert> => {
    try {
      const document = readNewDocument(collection, body, writer, now);
      return { write: await openInsert(app, place, document), document, hasMoved };
    } catch (error) {
      return refuse(error);
    }
  };
  /** Once it is known what those before it leave, it may turn out to be something else. */
  const refuse = (error: unknown): OpenedUpsert => {
    if (own.every(({ left }) => left() !== undefined)) throw error;
    const decide = (): never => {
      throw error;
    };
    return { write: { collection, id: new ObjectId(), action: 'insert', listeners: null, decide }, hasMoved };
  };
  if (!id) return insert();
  let update: DecidedWrite;
  try {
    update = await openUpdate(app, place, readUpdate(place, id.toHexString(), body, now));
  } catch (error) {
    // What is wrong with the update must not show that there is the document.
    if (own.some((each) => each.write.id.equals(id)) || (await isSeen(app, place, id))) return refuse(error);
    return insert();
  }
  const write: DecidedWrite = {
    ...update,
    decide(before, ...asking) {
      if (before?.isDeleted !== false || !holds(before)) throw changing();
      try {
        return update.decide(before, ...asking);
      } catch (error) {
        isUnseen = error instanceof AppError && error.code === 'DOCUMENT_NOT_FOUND';
        if (isUnseen) unseen.add(String(id));
        throw error;
      }
    },
  };
  return { write, hasMoved };
}

/** 401 for somebody unknown who may neither update nor insert. */
function requireSomeWrite(writer: EndWriter): void {
  try {
    for (const name of ['read', 'update', 'updateTo'] as const) writer.requireKnown(name);
  } catch {
    writer.requireKnown('create');
  }
}

/** Whether the writer may know of the document. */
async function isSeen(app: App, { collection, writer }: WriteTarget, id: ObjectId): Promise<boolean> {
  if (!writer) return true;
  if (!writer.userId) return false;
  const sets = await writer.openSets();
  return lookAt(app, collection, id, (stored, exists) => {
    try {
      if (stored) requireAdmitted(writer, 'update', stored, sets(exists));
      return stored !== null;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return error.code !== 'DOCUMENT_NOT_FOUND';
    }
  });
}

/** The values of the key as they are compared; 400 with each that is missing. */
function readKey({ collection, writer }: WriteTarget, { by, body }: Upsert, now: number): [string, unknown][] {
  const filled = { ...withWriter(collection, {}, writer), ...body };
  const problems = new Problems();
  const key = by.map((name): [string, unknown] => {
    const sent = Object.hasOwn(filled, name) ? filled[name] : undefined;
    if (sent === undefined || sent === null) {
      problems.add('required', 'is required', name);
      return [name, null];
    }
    if (name === collection.rls?.ownerField) {
      if (typeof sent !== 'string') problems.add('type', 'must be a String', name);
      return [name, sent];
    }
    const change = readChange(collection, new ObjectId(), { [name]: sent }, { now, takesOperators: false });
    return [name, comparedValue(collection, name, applyChange(change, {} as StoredDocument)[name])];
  });
  problems.throwIfAny();
  return key;
}

/**
 * Carries upserts out, which `attempt` adds to `opened`: again where one was refused because its key has moved, or its
 * document is `unseen`.
 */
export async function untilFound<T>(attempt: (opened: OpenedUpsert[], unseen: Set<string>) => Promise<T>): Promise<T> {
  const unseen = new Set<string>();
  for (let n = 1; ; n++) {
    const opened: OpenedUpsert[] = [];
    try {
      return await attempt(opened, unseen);
    } catch (error) {
      if (!(error instanceof AppError) || n === MAX_ATTEMPTS) throw error;
      let isAgain = false;
      for (const { hasMoved } of opened) isAgain ||= await hasMoved();
      if (!isAgain) throw error;
    }
  }
}
