import { appendFileSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../storage-error.js';
import { translateStorageError } from '../file/translate-error.js';

const NOTES_FILE = 'damage-met';
/** What a process notes of one collection, and what all of them may fill. */
const MAX_OF_ONE = 3;
const MAX_BYTES = 64 * 1024;

/** Damage that a process met while it worked. */
export interface MetDamage {
  readonly at: string;
  readonly message: string;
}

/**
 * Remembers beside the data file what damage any process met, for those who look for it later: a damaged page may be in
 * a place that is read once a week.
 */
export class DamageNotes {
  private readonly path: string;
  private readonly noted = new Map<string | null, number>();

  constructor(
    dataDir: string,
    private readonly file: string,
  ) {
    this.path = join(dataDir, NOTES_FILE);
  }

  /** What was thrown by work on the namespace, in the words of a StorageError where the file is the cause; notes it. */
  judge(error: unknown, ns: string | null): unknown {
    const known = translateStorageError(error, this.file, ns);
    if (!(known instanceof StorageError) || known.code !== 'DAMAGED') return known;
    this.note(known);
    return known;
  }

  /** What was met since `forget`, the oldest first, each finding once. */
  read(): MetDamage[] {
    try {
      const lines = readFileSync(this.path, 'utf8').split('\n');
      const met = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as MetDamage);
      return met.filter(({ message }, n) => n === met.findIndex((other) => other.message === message));
    } catch {
      // There is none, or somebody writes it at this moment.
      return [];
    }
  }

  /** To be called when a look at every page has found nothing. */
  forget(): void {
    this.noted.clear();
    rmSync(this.path, { force: true });
  }

  private note({ message, ns }: StorageError): void {
    const times = (this.noted.get(ns) ?? 0) + 1;
    this.noted.set(ns, times);
    if (times > MAX_OF_ONE) return;
    try {
      if ((statSync(this.path, { throwIfNoEntry: false })?.size ?? 0) > MAX_BYTES) return;
      const met: MetDamage = { at: new Date().toISOString(), message };
      appendFileSync(this.path, `${JSON.stringify(met)}\n`, { mode: 0o600 });
    } catch {
      // The note is a help; what was asked for is answered all the same.
    }
  }
}
