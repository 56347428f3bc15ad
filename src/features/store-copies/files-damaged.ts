import { AppError, conflict } from '../../errors.js';

const MOST_NAMED = 5;

/** 409 FILES_DAMAGED for a backup that was made, with uploaded files that are damaged or missing. */
export function filesDamaged(backup: string, count: number, damage: readonly string[]): AppError {
  const more = count > MOST_NAMED ? ` … and ${count - MOST_NAMED} more.` : '';
  return conflict(
    'FILES_DAMAGED',
    `${backup} was made, but ${count} uploaded ${count === 1 ? 'file is' : 'files are'} damaged: ${damage.slice(0, MOST_NAMED).join(' ')}${more} Restore them from an older backup, or delete them. "bsvc doctor --deep" lists all.`,
  );
}

/** True for errors about what is stored, which is as damaged at the next try. */
export function isDamageReport(error: unknown): boolean {
  return error instanceof AppError && (error.code === 'STORE_DAMAGED' || error.code === 'FILES_DAMAGED');
}
