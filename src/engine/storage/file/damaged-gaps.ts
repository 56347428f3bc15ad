/** The keys between the two intact entries around damaged ones; null: no intact one follows. */
interface Gap {
  readonly from: Buffer;
  to: Buffer | null;
}

/**
 * Where the keys of damaged entries were. What a damaged key was before is not known, only that it lay between the
 * intact ones around it: what is looked for there may be what is damaged, also where nothing is found.
 */
export class DamagedGaps {
  private readonly gaps: Gap[] = [];
  /** The last intact key of the walk, and whether damaged entries followed it. */
  private last: Buffer = Buffer.alloc(0);
  private isOpen = false;

  get size(): number {
    return this.gaps.length;
  }

  /** To be called with the keys of all entries in their order. */
  add(key: Buffer, isIntact: boolean): void {
    if (isIntact && this.isOpen) this.gaps.at(-1)!.to = key;
    if (!isIntact && !this.isOpen) this.gaps.push({ from: this.last, to: null });
    this.isOpen = !isIntact;
    if (isIntact) this.last = key;
  }

  /** True where nobody knows on which side of the key a damaged entry belongs. */
  has(key: Buffer): boolean {
    return this.gaps.some(({ from, to }) => from.compare(key) < 0 && (to === null || key.compare(to) < 0));
  }

  /** True when a damaged entry may belong to the keys from `start` up to `end`. */
  meets(start: Buffer, end: Buffer): boolean {
    return this.gaps.some(({ from, to }) => from.compare(end) < 0 && (to === null || start.compare(to) < 0));
  }
}
