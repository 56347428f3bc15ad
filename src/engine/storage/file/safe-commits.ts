import { fdatasync, fdatasyncSync } from 'node:fs';
import { promisify } from 'node:util';
import { StorageError } from '../storage-error.js';
import { isDoubtful, isOfThisBoot, NOT_WRITTEN, readNote, writeNote } from './durable-note.js';
import type { LastCommit } from './last-commit.js';
import { failedWrite } from './translate-error.js';

const syncData = promisify(fdatasync);
const IN_USE = ' could not be written: end all processes that have it open, then start them again.';

/**
 * Knows which commits are on the disk, and makes sure that the file opens whole whatever it has of the others. LMDB
 * commits without waiting for the disk: its pages and the first page that names them may arrive in any order. So
 *
 * - a commit is written only when the disk has the one before, and a note in the file says so: LMDB touches nothing of
 *   which the last two consist, so whatever the disk has of it, one of the others is whole;
 * - it is safe, and may be acknowledged, when the disk has such a note about it;
 * - who opens the file after the machine was started again takes the last one back if there is no note about it.
 *
 * Both syncs run off the event loop, and a note shares that of the next commit when one follows.
 */
export class SafeCommits {
  /** The newest commit that the disk has, as far as this process has had it synced. */
  private synced = -1;
  /** The newest one that a note is about, as far as this process has seen; the note may not be on the disk. */
  private noted = -1;
  /** The newest one that is to be acknowledged. */
  safe = -1;
  /** How many were taken back since the file was made: what they were told of before, others may be told of again. */
  takenBack: number;

  constructor(
    private readonly path: string,
    private readonly lastCommit: LastCommit,
    /** Whether the disk has to have the note as well. */
    private readonly isFull: boolean,
  ) {
    this.takenBack = readNote(lastCommit.file, lastCommit.pageBytes)?.takenBack ?? 0;
  }

  /**
   * Makes the file say that the disk has the last commit; inside a transaction, before it writes anything. False when
   * no process has seen that yet: nothing may be written then. Throws FAILED when it is known that the disk has not.
   */
  note(last: number): boolean {
    const { file, pageBytes } = this.lastCommit;
    const note = readNote(file, pageBytes);
    if (isDoubtful(note, last)) throw failedWrite(this.path, new Error('a sync has failed'));
    this.noted = note?.transaction ?? this.noted;
    if (this.noted >= last) return true;
    if (this.synced < last) return false;
    writeNote(file, pageBytes, { transaction: last, takenBack: this.takenBack });
    this.noted = last;
    return true;
  }

  /** Whether a sync would make more of the commits up to this one safe. */
  needsSync(last: number): boolean {
    return last > this.synced || (this.isFull && this.noted > this.safe);
  }

  /** Whether it is still to be noted that the disk has this commit. */
  needsNote(last: number): boolean {
    return last > this.noted;
  }

  /** Has the disk take what is committed and noted, off the event loop. */
  async sync(): Promise<void> {
    const last = this.lastCommit.read();
    const { noted } = this;
    try {
      await syncData(this.lastCommit.file);
    } catch (error) {
      this.noteFailure();
      throw error;
    }
    this.took(last, noted);
  }

  /** As `sync`, at once. */
  syncNow(): void {
    const last = this.lastCommit.read();
    const { noted } = this;
    fdatasyncSync(this.lastCommit.file);
    this.took(last, noted);
  }

  /** Whether a sync of any process has failed since the file was opened: nothing may follow that commit. */
  hasFailed(): boolean {
    const { file, pageBytes } = this.lastCommit;
    return readNote(file, pageBytes)?.boot === NOT_WRITTEN;
  }

  /**
   * Takes the last commit back if the disk may have it in part; to be called before anything is read. `isAlone`:
   * whether no other process has the file open. Throws BUSY while one does that may read the commit.
   */
  recover(isAlone: () => boolean): void {
    const { file, pageBytes } = this.lastCommit;
    this.lastCommit.follow((last) => {
      const note = readNote(file, pageBytes);
      this.takenBack = note?.takenBack ?? 0;
      if (note !== null && isOfThisBoot(note)) return;
      let kept = last;
      if (note !== null && isDoubtful(note, last)) {
        if (note.boot === NOT_WRITTEN && !isAlone()) throw new StorageError('BUSY', `${this.path}${IN_USE}`);
        this.takenBack++;
        // On the disk before the commit is gone: one that is gone was counted.
        writeNote(file, pageBytes, { ...note, takenBack: this.takenBack }, note.boot);
        fdatasyncSync(file);
        kept = this.lastCommit.takeBack();
      }
      // A file without notes is whole, but perhaps not on the disk: the process that made it may not have synced it.
      fdatasyncSync(file);
      writeNote(file, pageBytes, { transaction: kept, takenBack: this.takenBack });
      this.took(kept, kept);
      this.noted = kept;
    });
  }

  private took(last: number, noted: number): void {
    this.synced = Math.max(this.synced, last);
    this.safe = Math.max(this.safe, this.isFull ? noted : last);
  }

  /**
   * The system reports a failed sync once: what the disk did not take then looks written until it is read again. So the
   * file says that the commits since the last note are not to be trusted.
   */
  private noteFailure(): void {
    const { file, pageBytes } = this.lastCommit;
    try {
      this.lastCommit.follow((last) => {
        const note = readNote(file, pageBytes);
        if (note !== null && note.transaction < last) writeNote(file, pageBytes, note, NOT_WRITTEN);
      });
    } catch {
      // This process writes nothing more; another one meets the failure itself.
    }
  }
}
