import { serialize, type Document } from 'bson';
import { loadMatchers } from '../../../platform/database/database.js';

/** Whether a document at hand matches a filter. */
export async function openMatch(filter: Document): Promise<(document: Document) => boolean> {
  const matcher = (await loadMatchers())(filter);
  return (document) => matcher.matches(Buffer.from(serialize(document)));
}
