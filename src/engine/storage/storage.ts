import type { GrowthBound } from './checks/document-checks.js';
import { Catalog } from './catalog/catalog.js';
import { CommitQueue } from './commit-queue.js';
import { Documents } from './documents.js';
import { type Durability, type Environment, openEnvironment } from './file/environment.js';
import type { Snapshot } from './file/guard-reads.js';
import { Reserve } from './file/reserve.js';
import type { LongRead } from './long-read.js';
import { DamageNotes } from './checks/damage-notes.js';
import { READER_ROW } from './file/last-commit.js';

/** A view of the data as of one moment, which keeps its pages until it is released. */
export interface HeldView {
  release(): void;
}

/** A view whose first turn is not over: it reads the snapshot of this turn. */
interface ReadingView {
  /** Keeps the snapshot for this view and for all others that read it. */
  hold(): void;
  /** Called with the snapshot that was kept; null when too many are. */
  goOnIn(snapshot: Snapshot | null): void;
}

/** The opened data file with what reads and writes it. */
export interface Storage {
  readonly environment: Environment;
  readonly catalog: Catalog;
  readonly queue: CommitQueue;
  readonly documents: Documents;
  readonly snapshots: Snapshots;
  readonly reserve: Reserve;
  readonly damage: DamageNotes;
  /** The views that commands of this process hold. */
  readonly views: Set<HeldView>;
  /** The views that have begun to read in this turn and are not held yet. */
  readonly reading: Set<ReadingView>;
  /** Told of reads that look at many documents, when they do. */
  onLongRead: ((read: LongRead) => void) | null;
  /** Ids of the indexes that this process is building. */
  readonly building: Set<number>;
  /**
   * Makes everything visible that any process committed so far; to be called when a command begins to read. What others
   * have begun to read in this turn is held for them.
   */
  refresh(): void;
  close(): Promise<void>;
}

export interface StorageOptions {
  countBy?: string | undefined;
  growth?: GrowthBound | null;
}

/**
 * Opens or creates the data file in `dataDir`; throws StorageError as `openEnvironment` does. The options: see
 * EngineOptions.
 */
export function openStorage(
  dataDir: string,
  durability: Durability,
  { countBy, growth = null }: StorageOptions = {},
): Storage {
  const environment = openEnvironment(dataDir, durability);
  const catalog = new Catalog(environment, countBy);
  const queue = new CommitQueue(environment, {
    begin: () => {
      catalog.beginTransaction();
    },
    beforeCommit: () => {
      catalog.finishTransaction();
    },
    aborted: () => {
      catalog.forget();
    },
  });
  catalog.attach(queue);
  const views = new Set<HeldView>();
  const reading = new Set<ReadingView>();
  return {
    environment,
    catalog,
    queue,
    documents: new Documents(environment, catalog, queue, growth),
    snapshots: new Snapshots(environment),
    reserve: new Reserve(dataDir),
    damage: new DamageNotes(dataDir, environment.path),
    views,
    reading,
    onLongRead: null,
    building: new Set(),
    refresh() {
      for (const view of reading) view.hold();
      environment.store.resetReadTxn();
      catalog.refresh();
    },
    async close() {
      await queue.close();
      for (const view of views) view.release();
      await environment.close();
    },
  };
}

/** A snapshot that a process reads from: pages that were freed since it was taken are not used again until it ends. */
export interface HeldSnapshot {
  readonly pid: number;
  /** How long it has been seen at least, in milliseconds. */
  readonly ageMs: number;
}

/** The snapshots that all processes hold at the data file, with their ages as far as this process has watched them. */
class Snapshots {
  private firstSeen = new Map<string, number>();

  constructor(private readonly environment: Environment) {}

  /** Frees the slots of processes that are dead, then returns the snapshots that are left, the oldest first. */
  check(): HeldSnapshot[] {
    const { store } = this.environment;
    store.resetReadTxn();
    store.readerCheck();
    const now = performance.now();
    const held: HeldSnapshot[] = [];
    const seen = new Map<string, number>();
    for (const [row, pid] of store.readerList().matchAll(READER_ROW)) {
      const key = row.trim();
      const since = this.firstSeen.get(key) ?? now;
      seen.set(key, since);
      held.push({ pid: Number(pid), ageMs: now - since });
    }
    this.firstSeen = seen;
    return held.sort((a, b) => b.ageMs - a.ageMs);
  }
}
