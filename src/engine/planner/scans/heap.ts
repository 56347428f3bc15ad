/** A binary heap: what comes first is on top. */
export class Heap<T> {
  private readonly items: T[] = [];

  constructor(
    /** The first comes before the second. */
    private readonly before: (a: T, b: T) => boolean,
  ) {}

  get size(): number {
    return this.items.length;
  }

  get first(): T | undefined {
    return this.items[0];
  }

  add(item: T): void {
    const { items, before } = this;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(item, items[parent]!)) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the first one out; undefined when there is none. */
  take(): T | undefined {
    const { items } = this;
    const first = items[0];
    const last = items.pop();
    if (items.length > 0) {
      items[0] = last!;
      this.sink();
    }
    return first;
  }

  /** Puts what is on top to its place, after it has changed. */
  sink(): void {
    const { items, before } = this;
    const item = items[0]!;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && before(items[child + 1]!, items[child]!)) child++;
      if (!before(items[child]!, item)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }

  sum(size: (item: T) => number): number {
    return this.items.reduce((sum, item) => sum + size(item), 0);
  }

  clear(): void {
    this.items.length = 0;
  }
}

/** One of several sources that are merged: each reads ahead and hands over one after the other. */
export interface MergeSide {
  /** Nothing that was read ahead is left. */
  readonly isEmpty: boolean;
  /** There is nothing more to be read. */
  readonly finished: boolean;
  /** Forgets what was read ahead and not handed over. */
  drop(): void;
}

/** Sources that are merged: those that have something ahead as a heap, what comes first on top, and the others. */
export class SideHeap<S extends MergeSide> extends Heap<S> {
  /** Those that have to read before it is known what comes first. */
  empty: S[];

  constructor(
    private readonly sides: readonly S[],
    before: (a: S, b: S) => boolean,
  ) {
    super(before);
    this.empty = [...sides];
  }

  get finished(): boolean {
    return this.size === 0 && this.empty.length === 0;
  }

  /** To be called after the first source has handed something over. */
  moved(): void {
    const side = this.first!;
    if (!side.isEmpty) return this.sink();
    this.take();
    if (!side.finished) this.empty.push(side);
  }

  dropAhead(): void {
    for (const side of this.sides) side.drop();
    this.clear();
    this.empty = this.sides.filter(({ finished }) => !finished);
  }
}
