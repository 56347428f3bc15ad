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
export class SideHeap<S extends MergeSide> {
  /** Those that have to read before it is known what comes first. */
  empty: S[];
  private readonly heap: S[] = [];

  constructor(
    private readonly sides: readonly S[],
    /** What the first has ahead comes before what the second has. */
    private readonly before: (a: S, b: S) => boolean,
  ) {
    this.empty = [...sides];
  }

  get finished(): boolean {
    return this.heap.length === 0 && this.empty.length === 0;
  }

  /** The source of what comes first, once none is among the empty ones. */
  get first(): S | undefined {
    return this.heap[0];
  }

  /** What those in the heap have together. */
  sum(size: (side: S) => number): number {
    return this.heap.reduce((sum, side) => sum + size(side), 0);
  }

  /** Puts a source that has something ahead to its place. */
  add(side: S): void {
    const { heap, before } = this;
    let at = heap.length;
    heap.push(side);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(side, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = side;
  }

  /** To be called after the first source has handed something over. */
  moved(): void {
    const { heap } = this;
    const side = heap[0]!;
    if (side.isEmpty) {
      const last = heap.pop()!;
      if (!side.finished) this.empty.push(side);
      if (last === side) return;
      heap[0] = last;
    }
    this.sink();
  }

  dropAhead(): void {
    for (const side of this.sides) side.drop();
    this.heap.length = 0;
    this.empty = this.sides.filter(({ finished }) => !finished);
  }

  /** Puts what is on top to its place. */
  private sink(): void {
    const { heap, before } = this;
    const side = heap[0]!;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, side)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = side;
  }
}
