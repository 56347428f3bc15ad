import { outOfSpace, type AppError } from '../../errors.js';

/** Codes of the system and of a MongoDB for a disk that is full, or as full as this user may make it. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG', 'NO_SPACE', 14_031]);

/**
 * The 507 NO_SPACE to answer when `error` says that a disk is full; null for any other error. Reading goes on, and
 * nothing of what was refused is stored.
 */
export function findFullDisk(error: unknown): AppError | null {
  if (!(error instanceof Error) || !FULL.has((error as { code?: unknown }).code)) return null;
  return outOfSpace('NO_SPACE', 'The disk is full. Reads still work; try writes again later', {
    cause: error,
    retryAfterSeconds: 30,
  });
}
