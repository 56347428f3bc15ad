interface Entry<T> {
  readonly order: number;
  readonly number: number;
  readonly item: T;
}

/** Items by their order, the least first; of equal ones that which was added first. A binary heap. */
export class Soonest<T> {
  private readonly heap: Entry<T>[] = [];
  private added = 0;

  add(order: number, item: T): void {
    const { heap } = this;
    const entry = { order, number: this.added++, item };
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent]!, entry)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  /** Takes the first one out; undefined when there is none. */
  take(): { readonly order: number; readonly item: T } | undefined {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.order < b.order || (a.order === b.order && a.number < b.number);
}
