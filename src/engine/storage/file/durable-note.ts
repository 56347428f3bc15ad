import { readFileSync, readSync, writeSync } from 'node:fs';
import { checksum } from '../format/checksum.js';

/** What the file says about the commits that are on the disk. */
export interface DurableNote {
  /** A commit that is, and with it all before. */
  readonly transaction: number;
  /** The boot of the machine in which that was written; `NOT_WRITTEN` after a sync that has failed. */
  readonly boot: string;
  /** How many commits were taken back since the file was made. */
  readonly takenBack: number;
}

/** Stands for the boot where the system does not name it. */
const NO_BOOT = '0'.repeat(32);
/** The boot in a note when the disk did not take what was written behind that commit. */
export const NOT_WRITTEN = 'f'.repeat(32);
const BOOT = readBoot();
/** Whether a restart of the machine is told from that of a process; where not, LMDB syncs as it commits. */
export const KNOWS_BOOT = BOOT !== NO_BOOT;

/** Notes take turns in the last sectors of the first two pages, of which LMDB uses the beginning only. */
const SECTOR_BYTES = 512;
const NOTE_BYTES = 36;
const BOOT_AT = 8;
const TAKEN_BACK_AT = 24;
const SUM_AT = 28;
const MARK_AT = 32;
const MARK = 0x65746f6e;

function readBoot(): string {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim().replaceAll('-', '');
    return /^[0-9a-f]{32}$/.test(id) ? id : NO_BOOT;
  } catch {
    return NO_BOOT;
  }
}

/** The newer of the file's notes; null when it has none, as LMDB has synced each of its commits. */
export function readNote(file: number, pageBytes: number): DurableNote | null {
  let newest: DurableNote | null = null;
  for (const slot of [0, 1]) {
    const bytes = Buffer.alloc(NOTE_BYTES);
    readSync(file, bytes, 0, NOTE_BYTES, placeOf(slot, pageBytes));
    if (bytes.readUInt32LE(MARK_AT) !== MARK || bytes.readInt32LE(SUM_AT) !== checksum(0, bytes, SUM_AT)) continue;
    const transaction = Number(bytes.readBigUInt64LE(0));
    if (newest === null || transaction > newest.transaction) {
      const boot = bytes.toString('hex', BOOT_AT, TAKEN_BACK_AT);
      newest = { transaction, boot, takenBack: bytes.readUInt32LE(TAKEN_BACK_AT) };
    }
  }
  return newest;
}

/** Writes a note, which is on the disk after the next sync. Only the holder of the write lock may call it. */
export function writeNote(file: number, pageBytes: number, note: Omit<DurableNote, 'boot'>, boot = BOOT): void {
  const { transaction, takenBack } = note;
  const bytes = Buffer.alloc(NOTE_BYTES);
  bytes.writeBigUInt64LE(BigInt(transaction), 0);
  bytes.write(boot, BOOT_AT, 'hex');
  bytes.writeUInt32LE(takenBack, TAKEN_BACK_AT);
  bytes.writeInt32LE(checksum(0, bytes, SUM_AT), SUM_AT);
  bytes.writeUInt32LE(MARK, MARK_AT);
  writeSync(file, bytes, 0, NOTE_BYTES, placeOf(transaction & 1, pageBytes));
}

/**
 * Whether the newest commit may be on the disk in part: the machine was started again since it was written, or a sync
 * has failed, and nobody was told yet that it is safe. The one before it is whole.
 */
export function isDoubtful(note: DurableNote | null, newest: number): boolean {
  return note !== null && note.transaction < newest && note.boot !== BOOT;
}

/** Whether the note was written since the machine was started. */
export function isOfThisBoot(note: DurableNote): boolean {
  return note.boot === BOOT;
}

function placeOf(slot: number, pageBytes: number): number {
  return (slot + 1) * pageBytes - SECTOR_BYTES;
}
