import type { Transaction } from 'lmdb';
import { holdSnapshot, type Snapshot } from './file/guard-reads.js';
import type { PageState } from './file/page-layout.js';
import type { CollectionEntry } from './keys/index-definition.js';
import type { DescribeRead, ReadCommand } from './long-read.js';
import type { Storage } from './storage.js';

/** Pages freed since a view was taken are not used again while it lasts, so none lasts longer. */
const MAX_MS = 30_000;
/** Each takes one of LMDB's slots for readers. */
const MAX_HELD = 64;

/** Documents a read may look at before it is reported. */
const LONG_READ_DOCUMENTS = 10_000;

/**
 * One moment of the data for a command that reads in several turns: what is committed in between, all documents of one
 * insert with it, is seen as a whole or not at all. Nothing is held before the first turn ends, unless another command
 * asks for the newest state in it.
 */
export class View {
  private held: Transaction | null = null;
  private catalogVersion = 0;
  private timer: NodeJS.Timeout | undefined;
  /** Read in the first turn; what is held since protects its pages. */
  private pages: PageState | null = null;
  /** The first turn is over. */
  private goesOn = false;
  private looked = 0;

  constructor(
    private readonly storage: Storage,
    /** Of a read that is told of when it is long. */
    private readonly command: ReadCommand | null = null,
  ) {}

  /** Adds to the documents that the command has looked at; the scan that makes them many is told of. */
  addLooked(documents: number, describe: DescribeRead | null): void {
    const before = this.looked;
    this.looked += documents;
    if (before > LONG_READ_DOCUMENTS || this.looked <= LONG_READ_DOCUMENTS) return;
    if (this.command !== null && describe !== null) this.storage.onLongRead?.({ command: this.command, ...describe() });
  }

  /** The transaction to read with, undefined for the one of this turn. */
  get transaction(): Transaction | undefined {
    return this.held ?? undefined;
  }

  /** The state of the file's pages to read with: as new as what the first turn reads, or newer. */
  pageState(): PageState {
    if (this.pages === null || (this.goesOn && this.held === null)) {
      this.pages = this.storage.environment.pages.readState();
    }
    return this.pages;
  }

  /**
   * To be called before a command reads that gives way to others within a turn, and before it reads on: it sees
   * everything that is committed, or still what it has begun to read in its first turn. To be ended by `release`.
   */
  refresh(): void {
    if (this.storage.reading.has(this)) return;
    this.storage.refresh();
    this.begin();
  }

  /** As `refresh`, of a command that has made everything visible in this turn. */
  begin(): void {
    if (!this.goesOn) this.storage.reading.add(this);
  }

  /** Keeps for later turns what this turn reads. Does nothing when it is held already, or when too many are. */
  hold(): void {
    if (this.held !== null) return;
    const { environment, reading, views } = this.storage;
    // From here on this turn reads another snapshot, so all that have begun to read this one keep it.
    reading.add(this);
    const snapshot = views.size < MAX_HELD ? holdSnapshot(environment.store) : null;
    for (const view of reading) view.goOnIn(snapshot);
    reading.clear();
    snapshot?.done();
  }

  goOnIn(snapshot: Snapshot | null): void {
    const { views, catalog } = this.storage;
    this.goesOn = true;
    if (snapshot === null || views.size >= MAX_HELD) return;
    snapshot.use();
    this.held = snapshot;
    this.catalogVersion = catalog.version;
    views.add(this);
    this.timer = setTimeout(() => {
      this.release();
    }, MAX_MS).unref();
  }

  /** Later reads see what is newest then. */
  release(): void {
    this.storage.reading.delete(this);
    if (this.held === null) return;
    clearTimeout(this.timer);
    this.storage.views.delete(this);
    const held = this.held;
    this.held = null;
    held.done();
  }

  /** The collection as it is in this view: an index that was finished later has not all of its entries here. */
  find(ns: string): CollectionEntry | null {
    const { catalog } = this.storage;
    if (this.held === null || catalog.version === this.catalogVersion) return catalog.find(ns);
    return catalog.findIn(this.held, ns);
  }

  /** Runs `work` so that what it reads of documents and entries is of this view. */
  read<T>(work: () => T): T {
    if (this.held === null) return work();
    const { reader } = this.storage.environment;
    reader.transaction = this.held;
    try {
      return work();
    } finally {
      reader.transaction = undefined;
    }
  }
}
