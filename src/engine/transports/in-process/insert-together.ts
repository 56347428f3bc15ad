import type { AppValueOptions } from '../../codec/app-values.js';
import type { Doc } from '../../codec/document.js';
import type { Core } from '../../commands/command.js';
import { toDriverError } from './driver-errors.js';
import { openCommandSession } from './session.js';

/** Stores new documents in one transaction; a refusal of one, as the driver's error, leaves none. */
export async function insertTogether(
  core: Core,
  { db, collection }: { db: string; collection: string },
  documents: readonly Doc[],
  options: AppValueOptions,
): Promise<void> {
  const { storage } = core;
  const ns = `${db}.${collection}`;
  const session = openCommandSession(core, db, options);
  const stored = documents.map((document) => session.encode(document, document['_id']).bytes);
  if (stored.length === 0) return;
  try {
    await storage.queue.write(() => {
      storage.documents.insertTogether(storage.catalog.find(ns) ?? storage.catalog.create(ns), stored);
    });
  } catch (error) {
    throw toDriverError(storage.damage.judge(error, ns));
  }
}
