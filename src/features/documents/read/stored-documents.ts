import type { App } from '../../../app.js';
import { hexOf } from '../../../platform/ids.js';
import { estimateReply } from '../../../http/admission/weights.js';
import type { Tenant } from '../../../fair-limiter.js';
import { ownTurn, turn } from '../../../scheduler.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { decodeStored, encodeInParts, writeDocuments } from '../reply/encode-document.js';
import { wrapReply, type EncodedReply } from '../reply/encoded-reply.js';
import type { Presentation } from '../query/parse-list-query.js';
import { populateDocuments } from './populate-documents.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';
import type { ReplySize } from '../reply/reply-size.js';
import { selectFields } from '../reply/select-fields.js';

/** Documents as BSON, as `raw` reads give them, and what is left to do before they may be shown. */
export interface StoredDocuments {
  collection: Collection;
  rows: readonly Buffer[];
  /** The paths to show of documents that were read with more; null = they were read with what is to be shown. */
  selected: string[] | null;
  /** The size of the reply so far. */
  size: ReplySize;
}

/** The amount of BSON that is decoded before others get a turn. */
const TURN_BYTES = 256 * 1024;

/** What has been read is not refused any more. */
const tenantOfReply = ({ project }: Caller): Tenant => ({ project: hexOf(project._id), address: '' });

/** The documents as objects, populated. */
export async function presentStored(
  app: App,
  caller: Caller,
  { collection, rows, selected, size }: StoredDocuments,
  query: Presentation,
): Promise<PresentedDocument[]> {
  const documents: PresentedDocument[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (bytes > TURN_BYTES) {
      bytes = 0;
      await ownTurn(tenantOfReply(caller));
    }
    bytes += row.length;
    const document = decodeStored(row);
    documents.push(presentDocument(selected ? selectFields(document, selected) : document, query.meta));
  }
  if (query.populate.length > 0) await populateDocuments(app, caller, { collection, documents }, query, size);
  return documents;
}

/** To be awaited, if there is something to, before documents of so many bytes are encoded. */
export function turnToEncode(caller: Caller, bytes: number): Promise<void> | void {
  return turn(estimateReply(Math.min(bytes, TURN_BYTES)), tenantOfReply(caller), 'reply');
}

/** The JSON array of the documents, without decoding them unless something has to be put into them. */
export async function encodeStored(
  app: App,
  caller: Caller,
  stored: StoredDocuments,
  query: Presentation,
): Promise<EncodedReply> {
  const { rows, selected, size } = stored;
  const release = (): void => size.release();
  const pause = turnToEncode(caller, size.bytes);
  if (pause) await pause;
  if (selected === null && query.populate.length === 0) {
    if (!size.isLarge) return { write: (out) => (writeDocuments(out, rows, query.meta), '') };
    return { parts: encodeInParts(rows, query.meta), release };
  }
  const documents = await presentStored(app, caller, stored, query);
  return size.isLarge ? { parts: encodeEach(documents), release } : toLatin1(documents);
}

/** A list in the envelope. */
export function listEnvelope({ json, counted }: { json: EncodedReply; counted: boolean }): EncodedReply {
  const message = counted ? 'Documents counted' : 'Documents fetched';
  return wrapReply('{"success":true,"data":', json, `,"message":"${message}"}`);
}

function* encodeEach(documents: readonly PresentedDocument[]): Generator<string> {
  for (let at = 0; at < documents.length; at++) yield (at === 0 ? '[' : ',') + toLatin1(documents[at]);
  yield ']';
}

/** The JSON of one document, like encodeStored; its bytes are counted already. */
export async function encodeOne(
  app: App,
  caller: Caller,
  { collection, row }: { collection: Collection; row: Buffer },
  query: Presentation,
  size: ReplySize,
): Promise<EncodedReply> {
  const [document] = await presentStored(app, caller, { collection, rows: [row], selected: null, size }, query);
  const text = toLatin1(document);
  return size.isLarge ? { parts: [text], release: () => size.release() } : text;
}

function toLatin1(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).latin1Slice();
}
