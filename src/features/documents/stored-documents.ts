import type { App } from '../../app.js';
import type { Caller } from '../access/caller.js';
import { decodeDocument, encodeDocument, encodeDocuments } from './encode-document.js';
import type { Presentation } from './parse-list-query.js';
import { populateDocuments } from './populate-documents.js';
import { presentDocument, type PresentedDocument } from './present-document.js';
import { ReplySize } from './reply-size.js';
import { selectFields } from './select-fields.js';

/** Documents as BSON, as `raw` reads give them, and what is left to do before they may be shown. */
export interface StoredDocuments {
  rows: readonly Buffer[];
  /** The paths to show of documents that were read with more; null = they were read with what is to be shown. */
  selected: string[] | null;
  /** What the reply holds already. */
  size: ReplySize;
}

/** The documents as objects, populated. */
export async function presentStored(
  app: App,
  caller: Caller,
  { rows, selected, size }: StoredDocuments,
  query: Presentation,
): Promise<PresentedDocument[]> {
  const documents = rows.map((row) => {
    const document = decodeDocument(row);
    return presentDocument(selected ? selectFields(document, selected) : document, query.meta);
  });
  await populateDocuments(app, caller, documents, query, size);
  return documents;
}

/** The JSON array of the documents as `latin1` text, without decoding them unless something has to be put into them. */
export async function encodeStored(
  app: App,
  caller: Caller,
  stored: StoredDocuments,
  query: Presentation,
): Promise<string> {
  if (stored.selected === null && query.populate.length === 0) return encodeDocuments(stored.rows, query.meta);
  return toLatin1(await presentStored(app, caller, stored, query));
}

/** The JSON of one document as `latin1` text, like encodeStored. */
export async function encodeOne(app: App, caller: Caller, row: Buffer, query: Presentation): Promise<string> {
  if (query.populate.length === 0) return encodeDocument(row, query.meta);
  const size = new ReplySize();
  size.add(row.length);
  const [document] = await presentStored(app, caller, { rows: [row], selected: null, size }, query);
  return toLatin1(document);
}

function toLatin1(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).latin1Slice();
}
