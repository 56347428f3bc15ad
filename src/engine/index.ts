import { type Core } from './commands/command.js';
import { Cursors } from './commands/cursors.js';
import { type DataDb } from './doors/in-process/contract.js';
import { openDatabase } from './doors/in-process/database.js';
import { type Durability, StorageError, type StorageErrorCode } from './storage/environment.js';
import { resumeBuilds } from './storage/index-build.js';
import { reclaimDropped } from './storage/reclaim.js';
import { openStorage } from './storage/storage.js';

export type {
  DataAggregationCursor,
  DataCollection,
  DataCursor,
  DataDb,
  DataFindCursor,
} from './doors/in-process/contract.js';
export { type Durability, StorageError, type StorageErrorCode };

export interface EngineOptions {
  /** Made with mode 0700 when it does not exist; several processes may open it at once. */
  dataDir: string;
  /** `full` by default: an acknowledged write survives a power loss. */
  durability?: Durability;
  /** The largest size of the data file in bytes. */
  maxBytes?: number;
  /** As the driver's option: fields whose value is `undefined` are left out instead of becoming null. */
  ignoreUndefined?: boolean;
}

/** An opened data directory. */
export interface Engine {
  db(name: string): DataDb;
  close(): Promise<void>;
}

const HOUSEKEEPING_MS = 30_000;

/**
 * Opens or creates the embedded database in `dataDir`; throws StorageError when the directory cannot be written to or
 * the file in it is foreign, cut short, or newer than this version.
 */
export function openEngine(options: EngineOptions): Engine {
  const { dataDir, durability = 'full', maxBytes, ignoreUndefined = false } = options;
  const storage = openStorage(dataDir, durability, maxBytes);
  const core: Core = { storage, cursors: new Cursors(), startedAt: Date.now() };
  let housekeeping = keepHouse(core);
  const timer = setInterval(() => {
    housekeeping = keepHouse(core);
  }, HOUSEKEEPING_MS);
  timer.unref();
  return {
    db: (name) => openDatabase(core, name, { ignoreUndefined }),
    async close() {
      clearInterval(timer);
      core.cursors.closeAll();
      storage.queue.close();
      await housekeeping;
      await storage.close();
    },
  };
}

/** Closes forgotten cursors and finishes what a killed process left: half-built indexes, space of dropped collections. */
async function keepHouse({ storage, cursors }: Core): Promise<void> {
  try {
    cursors.closeIdle();
    await resumeBuilds(storage);
    await reclaimDropped(storage);
  } catch {
    // Closed in between, or no space at the moment: the next round tries again.
  }
}
