import type { Document } from 'bson';
import type { Database } from '../../platform/database/database.js';

/** A write that matches once: what it takes away or changes is used up by it. */
export type Use = { collection: string; filter: object } & ({ update: object } | { remove: true });

/** The writes that use something up, and the refusal where it was used already. */
export interface Uses {
  steps: readonly Use[];
  refusal: () => Error;
}

/**
 * Uses something up and stores what it gives, by one transaction. Throws the refusal, with nothing stored, when one of
 * the writes matches no more.
 */
export async function useUp(
  db: Database,
  { steps, refusal }: Uses,
  given: { collection: string; insert: Document } | null = null,
): Promise<void> {
  try {
    await db.writeTogether([...steps, ...(given ? [given] : [])]);
  } catch (error) {
    const { step, cause } = error as { step?: number; cause?: Error | null };
    if (step === undefined || cause === undefined) throw error;
    throw cause ?? refusal();
  }
}
