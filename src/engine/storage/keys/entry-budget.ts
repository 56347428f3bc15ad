import { CODES, EngineError } from '../../errors.js';

/** The index entries that a write may still make, counted before any is made; equal items of an array count each. */
export class EntryBudget {
  /** Documents and index entries that one transaction takes in about 60 ms. */
  static readonly MOST = 10_000;
  taken = 0;

  constructor(private readonly most = EntryBudget.MOST) {}

  take(count: number): void {
    this.taken += count;
    if (this.taken > this.most) {
      throw new EngineError(CODES.TransactionTooLarge, `Storing this takes more than ${this.most} index entries`);
    }
  }
}
