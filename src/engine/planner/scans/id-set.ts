import { randomInt } from 'node:crypto';

const FIRST_SLOTS = 256;
const FIRST_BYTES = 8192;
/** In front of each id in the arena. */
const LENGTH_BYTES = 2;

/**
 * Encoded `_id`s that were met, as bytes one behind the other: a third of what a set of texts costs, in time and in
 * memory.
 */
export class IdSet {
  size = 0;
  /** Where the id of a slot begins in the arena, plus one; zero for a free slot. */
  private slots = new Int32Array(FIRST_SLOTS);
  private arena = Buffer.allocUnsafeSlow(FIRST_BYTES);
  private used = 0;

  /** True when the id between `from` and `to` is in the set; else it is added, if `adds` says so. */
  meet(bytes: Buffer, from: number, to: number, adds: boolean): boolean {
    const length = to - from;
    const { slots, arena } = this;
    const mask = slots.length - 1;
    let slot = hashOf(bytes, from, to) & mask;
    for (let at = slots[slot]!; at !== 0; slot = (slot + 1) & mask, at = slots[slot]!) {
      if (arena[at - 1]! + arena[at]! * 256 === length && isSame(arena, at - 1 + LENGTH_BYTES, bytes, from, length)) {
        return true;
      }
    }
    if (adds) this.add(slot, bytes, from, length);
    return false;
  }

  private add(slot: number, bytes: Buffer, from: number, length: number): void {
    const end = this.used + LENGTH_BYTES + length;
    if (end > this.arena.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.arena.length * 2, end));
      this.arena.copy(larger, 0, 0, this.used);
      this.arena = larger;
    }
    const { arena } = this;
    let at = this.used;
    this.slots[slot] = at + 1;
    arena[at++] = length & 0xff;
    arena[at++] = length >>> 8;
    for (let n = 0; n < length; n++) arena[at++] = bytes[from + n]!;
    this.used = end;
    if (++this.size * 2 > this.slots.length) this.grow();
  }

  private grow(): void {
    const slots = new Int32Array(this.slots.length * 2);
    const mask = slots.length - 1;
    const { arena } = this;
    for (let at = 0; at < this.used;) {
      const from = at + LENGTH_BYTES;
      const to = from + arena[at]! + arena[at + 1]! * 256;
      let slot = hashOf(arena, from, to) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = at + 1;
      at = to;
    }
    this.slots = slots;
  }
}

/** Clients choose ids: none shall know which of them meet on one slot. */
const SEED = randomInt(2 ** 32);

function hashOf(bytes: Buffer, from: number, to: number): number {
  let hash = SEED;
  let n = from;
  for (const fours = to - 3; n < fours; n += 4) {
    const word = bytes[n]! | (bytes[n + 1]! << 8) | (bytes[n + 2]! << 16) | (bytes[n + 3]! << 24);
    hash = Math.imul(hash ^ word, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; n < to; n++) {
    hash = Math.imul(hash ^ bytes[n]!, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return Math.imul(hash, 0x85ebca77) ^ (hash >>> 16);
}

function isSame(a: Buffer, at: number, b: Buffer, from: number, length: number): boolean {
  // The last bytes of an ObjectId differ most often.
  for (let n = length - 1; n >= 0; n--) if (a[at + n] !== b[from + n]) return false;
  return true;
}
