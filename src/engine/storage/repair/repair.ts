import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  copyFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { nextTurn } from '../../scheduler.js';
import { decodeCounts } from '../catalog/kept-counts.js';
import { decodeRecord } from '../catalog/catalog-records.js';
import { DamageNotes } from '../checks/damage-notes.js';
import { verifyFile } from '../checks/verify.js';
import { DATA_FILE, listProcesses, STORE_OPTIONS, markRepair, unmarkRepair } from '../file/environment.js';
import { checkRecord } from '../format/format-record.js';
import { COLLECTION_SPACE, COUNTER_SPACE, DOCUMENT_SPACE, FORMAT_KEY, META_SPACE } from '../format/key-spaces.js';
import { holdSnapshot } from '../file/guard-reads.js';
import { type Meta, PageError } from '../file/page-layout.js';
import { PageFile } from '../file/page-file.js';
import { syncToDisk } from '../sync-to-disk.js';
import { translateStorageError } from '../file/translate-error.js';
import type { CollectionDefinition, KeptCounts } from '../keys/index-definition.js';
import { openStorage, type Storage } from '../storage.js';
import { StorageError } from '../storage-error.js';
import { isWhole, rescueEntries } from './rescue-entries.js';
import { readDefinition, type RepairedCollection, type Salvage, settleCopy } from './settle-copy.js';

export type { RepairedCollection };

/** The folder in the data directory in which the copy is made. */
const DRAFT = 'repair.part';
/** Entries, and bytes of them, that are gathered before they are written. */
const BATCH = 1_000;
const BATCH_BYTES = 4 * 1024 * 1024;
/** How long is worked before others get their turn. */
const TURN_MS = 20;

export interface RepairOptions {
  /** Copies and says what would be lost, but leaves the store as it is. */
  dryRun?: boolean;
  /** What is being done, in a word or two, and how much of it. */
  onProgress?: (step: string, done: number, all: number | null) => void;
  signal?: AbortSignal;
}

/** What a repair has found and done. */
export interface RepairReport {
  /** What is damaged in the file, as `verify` says it; empty: it is whole, and nothing was done. */
  readonly problems: string[];
  /** Collections that are not what they were; the others are. */
  readonly collections: RepairedCollection[];
  /** Of all collections, in the new file. */
  readonly documents: number;
  /** Where the damaged file lies now; null when nothing was changed. */
  readonly damagedFile: string | null;
}

/**
 * Copies what is whole of a damaged data file into a new one, builds indexes again that are not, and puts it into its
 * place; the damaged one is kept beside it under another name and never written to. The new file is verified before it
 * takes the place: killed at any moment the store is the old one or the new one. Throws SHARED while another process
 * has the store open, NO_SPACE without room for the copy, FOREIGN or NEWER_FORMAT for what is not ours to repair.
 */
export async function repairFile(dataDir: string, options: RepairOptions = {}): Promise<RepairReport> {
  const path = join(dataDir, DATA_FILE);
  markRepair(dataDir);
  let held: RootDatabase<Buffer, Buffer> | null = null;
  const draft = join(dataDir, DRAFT);
  try {
    held = holdOpen(path);
    if (held !== null) refuseShared(held, path);
    const problems = await verifyFile(path, progressOf(options, 'Reading'));
    if (problems.length === 0) return { problems, collections: [], documents: 0, damagedFile: null };
    rmSync(draft, { recursive: true, force: true });
    requireRoom(dataDir, path);
    const { collections, documents } = await makeCopy(path, draft, options);
    const left = await verifyFile(join(draft, DATA_FILE), progressOf(options, 'Checking'));
    if (left.length > 0) throw new StorageError('DAMAGED', `The copy of ${path} is not whole: ${left[0]!}`);
    if (options.dryRun === true) return { problems, collections, documents, damagedFile: null };
    if (held !== null) refuseShared(held, path);
    const damagedFile = exchange(dataDir, join(draft, DATA_FILE));
    new DamageNotes(dataDir, path).forget();
    return { problems, collections, documents, damagedFile };
  } catch (error) {
    throw translateStorageError(error, path);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    await held?.close();
    unmarkRepair(dataDir);
  }
}

function progressOf({ onProgress, signal }: RepairOptions, step: string): Parameters<typeof verifyFile>[1] {
  return {
    ...(signal !== undefined && { signal }),
    onProgress: (done, all) => onProgress?.(step, done, all),
  };
}

/**
 * Has the file open, for reading, as long as it is repaired, so that others know; null when its first pages are
 * damaged: then nobody can open it.
 */
function holdOpen(path: string): RootDatabase<Buffer, Buffer> | null {
  const file = new PageFile(path);
  try {
    // LMDB may not survive what it finds there.
    file.readMeta();
  } catch (error) {
    if (!(error instanceof PageError)) throw error;
    return null;
  } finally {
    file.close();
  }
  try {
    const store = open<Buffer, Buffer>({ ...STORE_OPTIONS, path, readOnly: true });
    holdSnapshot(store);
    return store;
  } catch {
    return null;
  }
}

function refuseShared(store: RootDatabase<Buffer, Buffer>, path: string): void {
  const others = listProcesses({ store }).filter((pid) => pid !== process.pid);
  if (others.length === 0) return;
  const message = `${path} is open in other processes (${others.join(', ')}): end them, then repair it.`;
  throw new StorageError('SHARED', message);
}

function requireRoom(dataDir: string, path: string): void {
  const { size } = statSync(path);
  const { bavail, bsize, blocks } = statfsSync(dataDir);
  if (blocks === 0 || bavail * bsize >= size) return;
  const message = `The copy of ${path} may need ${size} bytes, and ${dataDir} has ${bavail * bsize} left: make room first.`;
  throw new StorageError('NO_SPACE', message);
}

async function makeCopy(
  path: string,
  draft: string,
  options: RepairOptions,
): Promise<{ collections: RepairedCollection[]; documents: number }> {
  const file = new PageFile(path);
  let storage: Storage | null = null;
  try {
    const meta = chooseMeta(file, path);
    storage = openStorage(draft, 'relaxed');
    const salvage = await copyEntries(file, meta, storage, path, options);
    let turnEnds = performance.now() + TURN_MS;
    const collections = await settleCopy(storage, salvage, async () => {
      if (performance.now() < turnEnds) return;
      options.onProgress?.('Building indexes', 0, null);
      await nextTurn();
      options.signal?.throwIfAborted();
      turnEnds = performance.now() + TURN_MS;
    });
    storage.refresh();
    const { catalog } = storage;
    const documents = catalog.list('').reduce((sum, { id }) => sum + catalog.counts(id).documents, 0);
    return { collections, documents };
  } finally {
    await storage?.close();
    file.close();
  }
}

function chooseMeta(file: PageFile, path: string): Meta {
  const metas = file.readLikelyMetas();
  const [likely] = metas;
  if (likely === undefined) {
    throw new StorageError('FOREIGN', `${path} has no beginning that bsvc could read: restore a backup.`);
  }
  // A number that is too small would hide pages, one that is too large names none.
  return { ...likely, lastPage: Math.min(Math.max(...metas.map(({ lastPage }) => lastPage)), file.countPages() + 64) };
}

interface Entry {
  readonly key: Buffer;
  readonly value: Buffer;
  /** How it was found. What is in the tree replaces the others, and what is sure replaces what is not. */
  readonly from: Source;
}

type Source = 'tree' | 'sure' | 'unsure';

/** What single documents are known by: the id of the collection, and the encoded ids as latin1. */
type DocumentIds = Map<number, Set<string>>;

/** Puts what is whole into the new store, and gathers what else is known about it. */
async function copyEntries(
  file: PageFile,
  meta: Meta,
  storage: Storage,
  path: string,
  { onProgress, signal }: RepairOptions,
): Promise<Salvage> {
  const counts = new Map<number, KeptCounts>();
  const definitions = new Map<number, CollectionDefinition>();
  const lostNames = new Set<string>();
  const damaged: DocumentIds = new Map();
  const unsure: DocumentIds = new Map();
  /** Records of collections that may have been dropped since. */
  const unsureDefinitions: Entry[] = [];
  let batch: Entry[] = [];
  let bytes = 0;

  const keep = (key: Buffer, value: Buffer, from: Source): void => {
    if (key[0] === COUNTER_SPACE) {
      const id = key.readUInt32BE(1);
      if (from === 'unsure') return;
      if (from === 'tree' || !counts.has(id)) counts.set(id, decodeCounts(decodeRecord(key, value, 'A count')));
      return;
    }
    if (key[0] === META_SPACE) return;
    if (key[0] === COLLECTION_SPACE) {
      const definition = readDefinition(key, value);
      if (definition === null) return;
      if (from === 'unsure') {
        unsureDefinitions.push({ key: Buffer.from(key), value: Buffer.from(value), from });
        return;
      }
      definitions.set(definition.id, definition);
      lostNames.delete(definition.ns);
    }
    batch.push({ key: Buffer.from(key), value: Buffer.from(value), from });
    bytes += key.length + value.length;
  };
  const take = (key: Buffer, value: Buffer): void => {
    if (key.equals(FORMAT_KEY)) {
      checkRecord(value, path);
    } else if (isWhole(key, value)) {
      keep(key, value, 'tree');
    } else if (key[0] === COLLECTION_SPACE) {
      lostNames.add(key.toString('utf8', 1));
    } else if (key[0] === DOCUMENT_SPACE && key.length > 5) {
      idsOf(damaged, key.readUInt32BE(1)).add(key.toString('latin1', 5));
    }
  };
  const write = async (): Promise<void> => {
    const entries = batch;
    batch = [];
    bytes = 0;
    await writeEntries(storage, entries, unsure);
  };

  const all = meta.main.leafPages + meta.main.branchPages;
  let done = 0;
  let turnEnds = performance.now() + TURN_MS;
  const taker = {
    take,
    takeRescued: (key: Buffer, value: Buffer, isSure: boolean) => keep(key, value, isSure ? 'sure' : 'unsure'),
  };
  for (const _page of rescueEntries(file, meta, taker)) {
    done++;
    if (batch.length >= BATCH || bytes >= BATCH_BYTES) await write();
    if (performance.now() < turnEnds) continue;
    onProgress?.('Copying', Math.min(done, all), all);
    await nextTurn();
    signal?.throwIfAborted();
    turnEnds = performance.now() + TURN_MS;
  }
  for (const { key, value } of unsureDefinitions) {
    // The count of a collection goes with it when it is dropped.
    const definition = readDefinition(key, value)!;
    if (counts.has(definition.id) && !definitions.has(definition.id)) keep(key, value, 'sure');
  }
  await write();
  forgetRescued(storage, damaged);
  return { counts, undefined: [...lostNames], damaged, unsure };
}

async function writeEntries(
  { queue, environment }: Storage,
  entries: readonly Entry[],
  unsure: DocumentIds,
): Promise<void> {
  for (let at = 0; at < entries.length;) {
    at = await queue.write(() => {
      let next = at;
      do {
        const { key, value, from } = entries[next++]!;
        const ids = key[0] === DOCUMENT_SPACE ? idsOf(unsure, key.readUInt32BE(1)) : null;
        const id = key.toString('latin1', 5);
        const isTaken = from !== 'tree' && environment.store.getBinaryFast(key) !== undefined;
        if (isTaken && !(from === 'sure' && ids?.has(id) === true)) continue;
        queue.put(key, value);
        if (from === 'unsure') ids?.add(id);
        else ids?.delete(id);
      } while (next < entries.length && !queue.expired());
      return next;
    });
  }
}

function idsOf(documents: DocumentIds, collection: number): Set<string> {
  const ids = documents.get(collection) ?? new Set();
  documents.set(collection, ids);
  return ids;
}

/** A document that was damaged in one place may have been found whole in another. */
function forgetRescued({ environment }: Storage, damaged: DocumentIds): void {
  environment.store.resetReadTxn();
  for (const [id, keys] of damaged) {
    for (const key of keys) {
      const whole = Buffer.alloc(5 + key.length);
      whole[0] = DOCUMENT_SPACE;
      whole.writeUInt32BE(id, 1);
      whole.write(key, 5, 'latin1');
      if (environment.store.doesExist(whole)) keys.delete(key);
    }
    if (keys.size === 0) damaged.delete(id);
  }
}

/**
 * Puts the new file into the place of the damaged one, which keeps a name of its own; that name is returned. There is
 * a data file at every moment.
 */
function exchange(dataDir: string, copy: string): string {
  const path = join(dataDir, DATA_FILE);
  const { mode, uid, gid } = statSync(path);
  chmodSync(copy, mode & 0o777);
  if (process.getuid?.() === 0) chownSync(copy, uid, gid);
  syncToDisk(copy);
  const kept = nameDamaged(path);
  try {
    linkSync(path, kept);
  } catch {
    // A file system without such links.
    copyFileSync(path, kept);
  }
  syncToDisk(dataDir);
  renameSync(copy, path);
  // It is about the other file; nobody else has it open.
  rmSync(`${path}-lock`, { force: true });
  syncToDisk(dataDir);
  return kept;
}

function nameDamaged(path: string): string {
  const stamp = new Date()
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(/[-:]/g, '');
  for (let n = 0; ; n++) {
    const name = `${path}.damaged-${stamp}${n === 0 ? '' : `-${n}`}`;
    if (!existsSync(name)) return name;
  }
}
