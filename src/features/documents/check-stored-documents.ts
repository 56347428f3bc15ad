import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import type { Collection } from '../collections/collection.js';
import { visibleDocuments } from './document.js';
import { documentStore } from './document-store.js';
import { readImportedDocument } from './imported-document.js';
import { presentDocument } from './present-document.js';

const MAX_EXAMPLES = 20;

export interface FitReport {
  checked: number;
  misfits: number;
  /** The first ones only. */
  examples: { id: string; message: string }[];
}

/** Which stored documents would be refused under `collection`'s settings if they were written now. Reads all of them, one at a time; changes nothing. */
export async function checkStoredDocuments(app: App, collection: Collection, stop: AbortSignal): Promise<FitReport> {
  const report: FitReport = { checked: 0, misfits: 0, examples: [] };
  const now = app.clock.now();
  const seen = new Map(collection.fields.filter((field) => field.unique).map(({ name }) => [name, new Set<string>()]));
  for await (const document of documentStore(app, collection).find(visibleDocuments())) {
    stop.throwIfAborted();
    // As JSON, which is how a client would send it back.
    const value = JSON.parse(JSON.stringify(presentDocument(document))) as Record<string, unknown>;
    const message = findMisfit(collection, value, now) ?? findRepeat(seen, value);
    report.checked++;
    if (message === null) continue;
    report.misfits++;
    if (report.examples.length < MAX_EXAMPLES) report.examples.push({ id: String(value._id), message });
  }
  return report;
}

function findMisfit(collection: Collection, value: Record<string, unknown>, now: number): string | null {
  try {
    readImportedDocument(collection, value, now);
    return null;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

function findRepeat(seen: ReadonlyMap<string, Set<string>>, value: Record<string, unknown>): string | null {
  let repeated: string | null = null;
  for (const [name, values] of seen) {
    if (value[name] === undefined) continue;
    const text = JSON.stringify(value[name]);
    if (values.has(text)) repeated ??= `${name} must be unique: another document has the same value`;
    values.add(text);
  }
  return repeated;
}
