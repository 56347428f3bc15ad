import type { Account } from './auth/account.js';
import type { Connection } from './connection.js';
import type { Operators } from './operators.js';
import type { CollectionName, Part } from './project.js';

/** The writes of a batch to one collection, in the order in which they are called. */
export interface BatchCollection<P, N extends CollectionName<P>> {
  /** A new document; with an `_id` of its own later writes of the batch can name it. */
  insert(document: Part<P, N, 'Insert'> & { _id?: string }): void;
  update(
    id: string,
    changes: Part<P, N, 'Update'> & Operators<Part<P, N, 'Update'>>,
    options?: { ifMatch?: { updatedAt: string } | undefined },
  ): void;
  /** To the trash. */
  remove(id: string, options?: { ifMatch?: { updatedAt: string } | undefined }): void;
  /** Back from the trash. */
  recover(id: string): void;
}

/** Several writes that are carried out together. */
export interface Batch<P> {
  collection<N extends CollectionName<P>>(name: N): BatchCollection<P, N>;
}

/** What a write of a batch has led to; no document for one that is in the trash. */
export interface BatchResult {
  id: string;
  document: ({ _id: string } & Record<string, unknown>) | null;
}

/** Sends batches; which collections they write to is their callers' to type. */
export interface SentBatch {
  send(build: (batch: Batch<never>) => void): Promise<BatchResult[]>;
}

export function openBatch({ connection }: Pick<Account<unknown>, 'connection'>): SentBatch {
  return { send: (build) => sendBatch(connection, build) };
}

/** Gathers the writes that `build` calls and sends them as one: all are carried out, or none. */
async function sendBatch<P>(connection: Connection, build: (batch: Batch<P>) => void): Promise<BatchResult[]> {
  const operations: object[] = [];
  build({
    collection: (collection) => ({
      insert: (body) => void operations.push({ op: 'insert', collection, body }),
      update: (id, body, options) => void operations.push({ op: 'update', collection, id, body, ...matching(options) }),
      remove: (id, options) => void operations.push({ op: 'remove', collection, id, ...matching(options) }),
      recover: (id) => void operations.push({ op: 'recover', collection, id }),
    }),
  });
  const call = { method: 'POST', path: '/batch', body: { operations }, repeat: 'key' } as const;
  return (await connection.send<{ data: { results: BatchResult[] } }>(call)).data.results;
}

const matching = ({ ifMatch }: { ifMatch?: { updatedAt: string } | undefined } = {}): object =>
  ifMatch ? { ifMatch: `"${ifMatch.updatedAt}"` } : {};
