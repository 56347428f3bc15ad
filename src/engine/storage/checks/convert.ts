import { ownerKey } from '../catalog/catalog.js';
import { listProcesses } from '../file/environment.js';
import { DOCUMENT_SPACE, INDEX_SPACE } from '../format/key-spaces.js';
import type { CollectionDefinition, CollectionEntry } from '../keys/index-definition.js';
import type { Storage } from '../storage.js';

/** Batch size, in documents or entries and in bytes. */
const CHUNK = 64;
const CHUNK_BYTES = 1024 * 1024;

/** Where a conversion stands between two transactions. */
interface Conversion {
  readonly ns: string;
  readonly id: number;
  /** The key spaces that are done; those of documents come first. */
  done: Set<number>;
  last: Buffer | null;
  /** Something was found that is not whole: it stays as it is, and the collection is never called checked. */
  hurt: boolean;
}

/**
 * Gives checksums to what format 1 stored, collection by collection, in transactions of a few milliseconds. Killed at
 * any moment it is begun again by another process: what has a checksum is only looked at, and counted in the
 * transaction that gave it.
 */
export async function convertStored(storage: Storage): Promise<void> {
  storage.refresh();
  const pending = storage.catalog.list('').filter(({ definition }) => definition.checked !== true);
  if (pending.length === 0) return;
  const processes = listProcesses(storage.environment);
  const isFree = ({ id, checked, converter }: CollectionDefinition): boolean =>
    checked !== true &&
    !storage.converting.has(id) &&
    (converter === undefined || converter === process.pid || !processes.includes(converter));
  for (const { ns, id } of pending) {
    const taken = await storage.queue.write(() => takeOver(storage, ns, isFree));
    if (!taken) continue;
    // Whatever comes of it, this process does not try again.
    storage.converting.add(id);
    const conversion: Conversion = { ns, id, done: new Set(), last: null, hurt: false };
    while (await storage.queue.write(() => convertSome(storage, conversion))) {
      // Each round is a transaction of its own.
    }
  }
}

function takeOver(storage: Storage, ns: string, isFree: (definition: CollectionDefinition) => boolean): boolean {
  const collection = storage.catalog.find(ns);
  if (collection === null || !isFree(collection.definition)) return false;
  storage.catalog.save({ ...collection.definition, converter: process.pid });
  return true;
}

/** True when there is more to do. */
function convertSome(storage: Storage, conversion: Conversion): boolean {
  const { catalog, queue } = storage;
  const collection = catalog.find(conversion.ns);
  if (collection?.id !== conversion.id) return false;
  do {
    const space = nextSpace(collection, conversion);
    if (space === null) {
      if (!conversion.hurt) catalog.save({ ...collection.definition, checked: true });
      return false;
    }
    convertChunk(storage, collection, conversion, space);
  } while (!queue.expired());
  return true;
}

/** The documents under 0, then the indexes under their ids; null when all is done. */
function nextSpace(collection: CollectionEntry, { done }: Conversion): number | null {
  return [0, ...collection.definition.indexes.map(({ id }) => id)].find((id) => !done.has(id)) ?? null;
}

function convertChunk(storage: Storage, collection: CollectionEntry, conversion: Conversion, space: number): void {
  const { documents, environment } = storage;
  const prefix = space === 0 ? ownerKey(DOCUMENT_SPACE, collection.id) : ownerKey(INDEX_SPACE, space);
  const chunk: { key: Buffer; value: Buffer }[] = [];
  let bytes = 0;
  const range = environment.store.getRange({
    start: conversion.last ?? prefix,
    end: Buffer.concat([prefix, Buffer.from([0xff])]),
    exclusiveStart: conversion.last !== null,
  });
  // Nothing may be written while a range is read.
  for (const entry of range) {
    chunk.push(entry);
    bytes += entry.value.length;
    if (chunk.length >= CHUNK || bytes >= CHUNK_BYTES) break;
  }
  for (const { key, value } of chunk) {
    if (space !== 0) documents.convertEntry(collection, space, key, value);
    else if (!documents.convert(collection, key, value)) conversion.hurt = true;
  }
  if (chunk.length < CHUNK && bytes < CHUNK_BYTES) {
    conversion.done.add(space);
    conversion.last = null;
  } else {
    conversion.last = chunk.at(-1)!.key;
  }
}
