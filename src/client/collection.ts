import { ApiError } from './api-error.js';
import type { Connection } from './connection.js';
import { hasOperators, type Operators } from './operators.js';
import type { CollectionName, FieldName, FilterOf, Part, RefPath, Shown, Sort } from './project.js';
import { buildQuery, pathPart } from './query.js';

/** How documents are shown. */
export interface ShowOptions<K extends string, R extends string> {
  /** Only these fields, and `_id`. */
  fields?: readonly K[];
  /** Ref fields to be replaced by the documents they name. */
  populate?: readonly R[];
  /** Trashed documents too. */
  includeDeleted?: boolean;
  signal?: AbortSignal;
}

/** Which documents, and how. */
export interface ListOptions<P, N, K extends string, R extends string> extends ShowOptions<K, R> {
  filter?: FilterOf<P, N>;
  /** `-createdAt` unless said; `['-views', 'title']` for several. */
  sort?: Sort<Part<P, N, 'Fields'>> | readonly Sort<Part<P, N, 'Fields'>>[];
  /** Documents of a page: 20 unless said, at most 1000. */
  limit?: number;
}

/** A page of a list. */
export interface Page<T> {
  items: T[];
  /** Documents that match, on all pages. */
  total: number;
  limit: number;
  page?: number;
  /** For the next page; null at the end. */
  nextCursor: string | null;
}

/** A change of a followed collection. */
export type Change<T> =
  { type: 'upsert'; id: string; at: string; document: T } | { type: 'gone'; id: string; at: string };

/** Changes since a cursor. */
export interface ChangePage<T> {
  items: Change<T>[];
  /** For `since` of the next request. */
  cursor: string;
  /** There is more at once. */
  more: boolean;
}

/** Which changes. */
export interface ChangeOptions<P, N, K extends string> {
  filter?: FilterOf<P, N>;
  fields?: readonly K[];
  /** A cursor; `now`; without it from the beginning. */
  since?: string;
  /** Changes of a page: 200 unless said, at most 1000. */
  limit?: number;
  /** Seconds to wait for a change, at most 25. */
  wait?: number;
  signal?: AbortSignal;
}

/** The documents of a collection. Every method throws an `ApiError`. */
export interface CoreCollection<P, N extends CollectionName<P>> {
  /** A page of documents: by `page`, or by the `cursor` of the page before (`start` for the first). */
  list<K extends FieldName<P, N> = never, R extends RefPath<P, N> = never>(
    options?: ListOptions<P, N, K, R> & { page?: number; cursor?: string },
  ): Promise<Page<Shown<P, N, K, R>>>;
  /** All documents that match, in pages of `limit`; none twice or left out while others are written. */
  iterate<K extends FieldName<P, N> = never, R extends RefPath<P, N> = never>(
    options?: ListOptions<P, N, K, R>,
  ): AsyncGenerator<Shown<P, N, K, R>, void, undefined>;
  /** The number of documents that match. */
  count(filter?: FilterOf<P, N>): Promise<number>;
  get<K extends FieldName<P, N> = never, R extends RefPath<P, N> = never>(
    id: string,
    options?: ShowOptions<K, R>,
  ): Promise<Shown<P, N, K, R>>;
  insert(document: Part<P, N, 'Insert'>): Promise<Part<P, N, 'Document'>>;
  /** Up to 100 documents, all or none. Their ids, in their order. */
  insertMany(documents: readonly Part<P, N, 'Insert'>[]): Promise<string[]>;
  /**
   * Changes the given fields; a dotted name changes one inside an object, null clears an optional one. Operators such
   * as `$inc` change what is stored at that moment. `ifMatch` is a document as it was read: 412 when it was changed.
   */
  update(
    id: string,
    changes: Part<P, N, 'Update'> & Operators<Part<P, N, 'Update'>>,
    options?: { ifMatch?: { updatedAt: string } | undefined },
  ): Promise<Part<P, N, 'Document'>>;
  /** To the trash, or for good at once. */
  remove(id: string, options?: { permanent?: boolean }): Promise<void>;
  /** Back from the trash. */
  recover(id: string): Promise<Part<P, N, 'Document'>>;
  /**
   * Changes all documents that match, with the secret key alone. `confirm` is their number, as `count` answers it: 409
   * `COUNT_DIFFERS` for another. Answers how many were changed.
   */
  updateMatching(
    filter: FilterOf<P, N>,
    changes: Part<P, N, 'Update'> & Operators<Part<P, N, 'Update'>>,
    options: { confirm: number },
  ): Promise<number>;
  /** The same to the trash, or for good. */
  removeMatching(filter: FilterOf<P, N>, options: { confirm: number; permanent?: boolean }): Promise<number>;
  /** Runs a pipeline of MongoDB’s stages. */
  aggregate<T = Record<string, unknown>>(
    pipeline: readonly object[],
    options?: { includeDeleted?: boolean; signal?: AbortSignal },
  ): Promise<T[]>;
  changes<K extends FieldName<P, N> = never>(
    options?: ChangeOptions<P, N, K>,
  ): Promise<ChangePage<Shown<P, N, K, never>>>;
}

interface Enveloped<T> {
  data: T;
}

/** A collection as untyped code sees it: the types are the callers'. */
type AnyCollection = CoreCollection<never, never>;

export function openCollection(connection: Connection, name: string): AnyCollection {
  const path = `/data/${pathPart(name, 'INVALID_NAME')}`;
  const at = (id: string): string => `${path}/${pathPart(id, 'INVALID_ID')}`;
  const list = async (options: AnyListOptions = {}): Promise<Page<never>> =>
    (await connection.send<Enveloped<Page<never>>>({ path, query: listQuery(options), signal: options.signal })).data;

  const collection = {
    list,
    async *iterate(options: AnyListOptions = {}) {
      for (let cursor: string | null = 'start'; cursor !== null;) {
        const page: Page<never> = await list({ limit: 200, ...options, cursor });
        yield* page.items;
        cursor = page.nextCursor;
      }
    },
    async count(filter?: object) {
      const query = buildQuery(filter, { count: true });
      return (await connection.send<Enveloped<{ count: number }>>({ path, query })).data.count;
    },
    async get(id: string, options: AnyListOptions = {}) {
      return connection.send({ path: at(id), query: listQuery(options), signal: options.signal });
    },
    insert: (document: object) => connection.send({ method: 'POST', path, body: document, repeat: 'key' }),
    async insertMany(documents: readonly object[]) {
      const call = { method: 'POST', path: `${path}/bulk`, body: documents, repeat: 'key' } as const;
      return (await connection.send<Enveloped<{ ids: string[] }>>(call)).data.ids;
    },
    async update(id: string, changes: object, { ifMatch }: { ifMatch?: { updatedAt: string } | undefined } = {}) {
      const call = {
        method: 'PATCH',
        path: at(id),
        body: changes,
        ...(ifMatch && { headers: { 'if-match': `"${ifMatch.updatedAt}"` } }),
        ...((ifMatch || hasOperators(changes)) && { repeat: 'key' as const }),
      } as const;
      return (await connection.send<Enveloped<never>>(call)).data;
    },
    async remove(id: string, { permanent }: { permanent?: boolean } = {}) {
      const query = buildQuery({}, { permanent });
      await twice(connection, { method: 'DELETE', path: at(id), query }, () => undefined);
    },
    async recover(id: string) {
      const reply = await twice<Enveloped<never>>(
        connection,
        { method: 'PATCH', path: `${at(id)}/recover` },
        async () => ({
          data: await connection.send({ path: at(id) }),
        }),
      );
      return reply.data;
    },
    async updateMatching(filter: object, body: object, { confirm }: { confirm: number }) {
      const call = { method: 'PATCH', path, query: buildQuery(filter, { confirm }), body, repeat: 'no' } as const;
      return (await connection.send<Enveloped<{ changed: number }>>(call)).data.changed;
    },
    async removeMatching(filter: object, options: { confirm: number; permanent?: boolean }) {
      const call = { method: 'DELETE', path, query: buildQuery(filter, { ...options }), repeat: 'no' } as const;
      return (await connection.send<Enveloped<{ removed: number }>>(call)).data.removed;
    },
    async aggregate(pipeline: readonly object[], { includeDeleted, signal }: AnyListOptions = {}) {
      const query = buildQuery({}, { include_deleted: includeDeleted });
      const call = { method: 'POST', path: `${path}/aggregate`, query, body: { pipeline }, signal } as const;
      return (await connection.send<Enveloped<never[]>>(call)).data;
    },
    async changes({ filter, fields, signal, ...rest }: AnyChangeOptions = {}) {
      const query = buildQuery(filter, { ...rest, fields });
      return (await connection.send<Enveloped<ChangePage<never>>>({ path: `${path}/changes`, query, signal })).data;
    },
  };
  // One implementation stands for the collections of every project's types.
  return collection as unknown as AnyCollection;
}

/** ListOptions of any collection. */
interface AnyListOptions {
  filter?: object;
  sort?: string | readonly string[];
  limit?: number;
  page?: number;
  cursor?: string;
  fields?: readonly string[];
  populate?: readonly string[];
  includeDeleted?: boolean;
  signal?: AbortSignal;
}

interface AnyChangeOptions {
  filter?: object;
  fields?: readonly string[];
  since?: string;
  limit?: number;
  wait?: number;
  signal?: AbortSignal;
}

function listQuery({
  filter,
  sort,
  limit,
  page,
  cursor,
  fields,
  populate,
  includeDeleted,
}: AnyListOptions): URLSearchParams {
  return buildQuery(filter, { sort, limit, page, cursor, fields, populate, include_deleted: includeDeleted });
}

/**
 * A change that answers 404 when it is made a second time: after an attempt whose answer was lost, 404 means that the
 * first one was made.
 */
async function twice<T>(
  connection: Connection,
  call: Parameters<Connection['send']>[0],
  made: () => T | undefined | Promise<T>,
): Promise<T> {
  try {
    return await connection.send<T>({ ...call, repeat: 'no' });
  } catch (error) {
    if (!(error instanceof ApiError) || !(error.status === 0 || error.status >= 502)) throw error;
  }
  try {
    return await connection.send<T>(call);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'DOCUMENT_NOT_FOUND') throw error;
    return (await made()) as T;
  }
}
