import type { FoundChange } from '../changes/change-log.js';
import { decodeStored, encodeStoredJson } from '../documents/reply/encode-document.js';
import { concealInRow } from '../documents/reply/conceal-fields.js';
import { presentDocument } from '../documents/reply/present-document.js';
import { selectFields } from '../documents/reply/select-fields.js';
import type { FeedQuery } from './feed-query.js';

type Shown = Pick<FeedQuery, 'fields' | 'meta' | 'sight'>;

/**
 * The members of a change as JSON without its braces; as `latin1` text that stands for UTF-8 (see replyEncodedJson).
 */
export function encodeChange({ id, at, document }: FoundChange, shown: Shown): string {
  const head = `"type":"${document ? 'upsert' : 'gone'}","id":"${id}","at":"${at.toISOString()}"`;
  return document ? `${head},"document":${encodeShown(document, shown)}` : head;
}

function encodeShown(row: Buffer, { fields, meta, sight }: Shown): string {
  if (!fields) return encodeStoredJson(concealInRow(row, sight ?? null), meta);
  const shown = presentDocument(selectFields(decodeStored(row), fields), meta);
  return Buffer.from(JSON.stringify(shown)).latin1Slice();
}
