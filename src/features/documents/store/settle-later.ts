import type { App } from '../../../app.js';
import type { Enqueueable } from '../../../platform/jobs/job-queue.js';
import type { CheckedWrite } from './reference-checks.js';

/** The document whose references are to be settled. */
export interface SettledDocument {
  projectId: string;
  collectionId: string;
  id: string;
}

/** The job that settles what refers to a document that went or came back. */
export const SETTLE_REFERENCES: Enqueueable<SettledDocument> & { name: string } = {
  name: 'documents.settleReferences',
};

/** A write that takes longer than this has failed. */
const WRITTEN_MS = 30_000;

/**
 * Asks for the settling of references before the write that calls for it, so that it comes too when the process dies
 * right after; answers what to call when the write is done.
 */
export async function settleLater(app: App, writes: readonly CheckedWrite[]): Promise<() => Promise<void>> {
  const payloads = writes.flatMap(({ settled }) => {
    if (!settled) return [];
    const { collection, id } = settled;
    const { _id, projectId } = collection;
    return [{ projectId: projectId.toHexString(), collectionId: _id.toHexString(), id: id.toHexString() }];
  });
  const enqueue = async (runAt: Date): Promise<void> => {
    for (const payload of payloads) {
      const uniqueKey = `references:${payload.collectionId}:${payload.id}`;
      await app.jobs.enqueue(SETTLE_REFERENCES, payload, { uniqueKey, whenPresent: 'rerun', runAt });
    }
  };
  const now = app.clock.now();
  await enqueue(new Date(now + WRITTEN_MS));
  return async () => {
    // The write stands: the job that was stored before it comes in any case.
    await enqueue(new Date(now)).catch((err: unknown) => app.log.warn({ err }, 'references are settled later'));
  };
}
