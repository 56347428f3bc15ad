import type { Document } from 'bson';
import type { FoundChange } from '../../changes/change-log.js';
import type { SortKey } from '../../documents/query/sort-key.js';
import type { WindowQuery } from '../feed-query.js';
import { compareEntries, digestOf, entryOf, positionOf, type WindowEntry, type WindowPart } from '../window-order.js';

/** What has to be read to fill a window. */
export interface Filling {
  /** Behind this document; null: from the beginning. */
  after: readonly SortKey[] | null;
  limit: number;
}

/** A change with the document as it is now; null where the window does not show such a document. */
interface Taken {
  change: FoundChange;
  document: Document | null;
}

/** Changes that come while a window is filled; with more it is filled once more. */
const MAX_MEANWHILE = 500;
const MAX_MEANWHILE_BYTES = 1024 * 1024;

/**
 * The window of a group: the first documents of a list, by their ids and sort keys, kept by each change. All that sorts
 * up to the last known place is in it. When one leaves, the next is read from the database.
 */
export class LiveWindow {
  #entries: WindowEntry[] = [];
  #byId = new Map<string, WindowEntry>();
  /** The last known place; null: nothing is behind the last entry. */
  #bound: WindowEntry | null = null;
  /** The place of a document could not be told by what is kept of it. */
  #isUnsure = false;
  #filling: Filling | null = null;
  /** What changes while it is filled; null: too much. */
  #meanwhile: Map<string, Taken> | null = null;
  #meanwhileBytes = 0;
  /** What members have not been told. */
  #untold = new Map<string, FoundChange>();
  /** Members wait to hear that they have everything. */
  #owesReady = false;
  #digest: string | null = null;
  /** What all members have been told, as `digest`. */
  told: string;

  constructor(
    private readonly query: WindowQuery,
    part: WindowPart,
  ) {
    this.#replace(part);
    this.told = this.digest;
  }

  /** For what it shows. */
  get digest(): string {
    return (this.#digest ??= digestOf(this.#entries));
  }

  /** Documents that it shows. */
  get size(): number {
    return this.#entries.length;
  }

  /** Takes a change: the document where it meets filter and rules now, else null. */
  take(change: FoundChange, document: Document | null): void {
    if (this.#filling) this.#remember({ change, document });
    const known = this.#byId.get(change.id);
    const entry = document && entryOf(document, this.query.sort);
    const before = known && this.#remove(known);
    const place = entry && this.#placeOf(entry);
    if (entry && place === undefined) {
      // It is read, together with all others.
      this.#isUnsure = true;
      if (known) this.#insert(known, before!);
      return;
    }
    if (entry && typeof place === 'number') {
      this.#insert(entry, place);
      this.#untold.set(change.id, change);
      this.#cut();
    } else if (known) {
      this.#untold.set(change.id, goneOf(change));
    }
  }

  /** Has a document that it shows sent once more. */
  resend(change: FoundChange): void {
    if (this.#byId.has(change.id)) this.#untold.set(change.id, change);
  }

  /** What has to be read, if anything; the answer is handed to `fill`. */
  begin(): Filling | null {
    if (this.#filling) return null;
    const missing = this.query.limit - this.#entries.length;
    const after = this.#isUnsure ? null : this.#bound && positionOf(this.#bound);
    if (!this.#isUnsure && (missing === 0 || !this.#bound)) return null;
    this.#owesReady = true;
    this.#meanwhile = new Map();
    this.#meanwhileBytes = 0;
    return (this.#filling = after ? { after, limit: missing } : { after, limit: this.query.limit });
  }

  /** True where members do not have all that it shows. */
  get isUntold(): boolean {
    return this.#untold.size > 0 || this.isFilling;
  }

  /** True while something is read, or has to be. */
  private get isFilling(): boolean {
    return this.#filling !== null || this.#isUnsure || (this.#bound !== null && this.size < this.query.limit);
  }

  /** Takes what `begin` has asked for. */
  fill(filling: Filling, part: WindowPart): void {
    if (this.#filling !== filling) return;
    this.#filling = null;
    const meanwhile = this.#meanwhile;
    this.#meanwhile = null;
    if (!meanwhile) return;
    if (filling.after) this.#append(part);
    else this.adopt(part);
    // What changed while it was read may have been read as it was before.
    for (const { change, document } of meanwhile.values()) this.take(change, document);
  }

  /** Replaces the whole window with one read at this position of the log or a later one. */
  adopt(part: WindowPart): void {
    const before = this.#byId;
    this.#replace(part);
    const at = new Date();
    for (const id of before.keys()) if (!this.#byId.has(id)) this.#untold.set(id, { id, at, document: null });
    for (const item of part.items) {
      if (before.get(item.id)?.version !== this.#byId.get(item.id)!.version) this.#untold.set(item.id, item);
    }
  }

  /** What members are to be told now, and whether they have everything then; null for nothing. */
  takeUntold(): { changes: FoundChange[]; isCaughtUp: boolean } | null {
    const isCaughtUp = !this.isFilling;
    if (this.#untold.size === 0 && !(this.#owesReady && isCaughtUp)) return null;
    // What is pushed out goes before what comes in.
    const all = [...this.#untold.values()];
    const changes = [...all.filter(({ document }) => !document), ...all.filter(({ document }) => document)];
    this.#untold.clear();
    this.#owesReady = !isCaughtUp;
    return { changes, isCaughtUp };
  }

  #replace({ entries, isEnd }: WindowPart): void {
    this.#entries = [...entries];
    this.#byId = new Map(entries.map((entry) => [entry.id, entry]));
    this.#bound = isEnd ? null : (entries.at(-1) ?? null);
    this.#isUnsure = false;
    this.#filling = null;
    this.#digest = null;
  }

  #append({ entries, items, isEnd }: WindowPart): void {
    const fresh = entries
      .map((entry, n) => ({ entry, item: items[n]! }))
      .filter(({ entry }) => !this.#byId.has(entry.id));
    const added = fresh.slice(0, this.query.limit - this.size);
    for (const { entry, item } of added) {
      this.#insert(entry, this.size);
      this.#untold.set(entry.id, item);
    }
    if (added.length < fresh.length) this.#bound = this.#entries.at(-1)!;
    else this.#bound = isEnd ? null : entries.at(-1)!;
  }

  #remember(taken: Taken): void {
    if (!this.#meanwhile) return;
    this.#meanwhile.set(taken.change.id, taken);
    this.#meanwhileBytes += taken.change.document?.length ?? 0;
    if (this.#meanwhile.size > MAX_MEANWHILE || this.#meanwhileBytes > MAX_MEANWHILE_BYTES) this.#meanwhile = null;
  }

  /** Where an entry belongs; null: behind the last known place; undefined where that cannot be told. */
  #placeOf(entry: WindowEntry): number | null | undefined {
    const { sort, limit } = this.query;
    const behind = this.#bound && compareEntries(entry, this.#bound, sort);
    if (this.#bound && behind === null) return undefined;
    if (behind !== null && behind > 0) return null;
    let [from, to] = [0, this.#entries.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const order = compareEntries(entry, this.#entries[middle]!, sort);
      if (order === null) return undefined;
      if (order < 0) to = middle;
      else from = middle + 1;
    }
    if (from < limit) return from;
    this.#bound = this.#entries.at(-1)!;
    return null;
  }

  #insert(entry: WindowEntry, place: number): void {
    this.#entries.splice(place, 0, entry);
    this.#byId.set(entry.id, entry);
    this.#digest = null;
  }

  /** Answers where it was. */
  #remove(entry: WindowEntry): number {
    const place = this.#entries.indexOf(entry);
    this.#entries.splice(place, 1);
    this.#byId.delete(entry.id);
    this.#digest = null;
    return place;
  }

  /** Pushes out the last one where there are too many. */
  #cut(): void {
    if (this.size <= this.query.limit) return;
    const last = this.#entries.at(-1)!;
    this.#remove(last);
    this.#untold.set(last.id, { id: last.id, at: new Date(), document: null });
    this.#bound = this.#entries.at(-1)!;
    // What is being read is behind the place that is known now.
    this.#filling = null;
  }
}

function goneOf({ id, at }: FoundChange): FoundChange {
  return { id, at, document: null };
}
