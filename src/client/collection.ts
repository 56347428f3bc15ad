import { ApiError } from './api-error.js';
import type { Connection } from './connection.js';
import { hasOperators, type Operators } from './operators.js';
import type { CollectionName, FieldName, FilterOf, Part, RefPath, Shown, Sort } from './project.js';
import { buildQuery, pathPart, toPlain } from './query.js';

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
export interface ListOptions<P, N, K extends string, R extends string> extends Omit<
  ShowOptions<K, R>,
  'includeDeleted'
> {
  /** Trashed documents too, or only these. */
  includeDeleted?: boolean | 'only';
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
  /** Send it as `since` in the next request. */
  cursor: string;
  /** There is more at once. */
  more: boolean;
  /** With `sort`: discard your copy, `items` are all documents. */
  reset?: boolean;
}

/** Which changes. */
export interface ChangeOptions<P, N, K extends string, R extends string> {
  filter?: FilterOf<P, N>;
  fields?: readonly K[];
  /** At most two Ref fields to be replaced by the documents they name. */
  populate?: readonly R[];
  /** A cursor; `now`; without it from the beginning. */
  since?: string;
  /** Changes of a page: 200 unless said, at most 1000. With `sort`: the first so many documents. */
  limit?: number;
  /** Follows the first `limit` documents as they are sorted. */
  sort?: Sort<Part<P, N, 'Fields'>> | readonly Sort<Part<P, N, 'Fields'>>[];
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
  /** A new document; it may have an `_id` of its own, 24 hexadecimal digits. */
  insert(document: Part<P, N, 'Insert'> & { _id?: string }): Promise<Part<P, N, 'Document'>>;
  /** Up to 100 documents, all or none. Their ids, in their order. */
  insertMany(documents: readonly Part<P, N, 'Insert'>[]): Promise<string[]>;
  /**
   * Changes the given fields; a dotted name changes one inside an object, null clears an optional one or sets it back
   * to its default. Operators such as `$inc` change what is stored at that moment. `ifMatch` is a document as it was
   * read: 412 when it was changed.
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
  changes<K extends FieldName<P, N> = never, R extends RefPath<P, N> = never>(
    options?: ChangeOptions<P, N, K, R>,
  ): Promise<ChangePage<Shown<P, N, K, R>>>;
}

interface Enveloped<T> {
  data: T;
}

/** A collection as untyped code sees it: the types are the callers'. */
type AnyCollection = CoreCollection<never, never>;

export function openCollection(connection: Connection, name: string): AnyCollection {
  const path = `/data/${pathPart(name, 'INVALID_NAME')}`;
  const at = (id: string): string => `${path}/${pathPart(id, 'INVALID_ID')}`;
  const data = async <T>(call: Parameters<Connection['send']>[0]): Promise<T> =>
    (await connection.send<Enveloped<T>>(call)).data;
  const list = (options: AnyListOptions = {}): Promise<Page<never>> =>
    data({ path, query: listQuery(options), signal: options.signal });
  const matching = (
    method: 'PATCH' | 'DELETE',
    filter: object,
    options: { confirm: number; permanent?: boolean },
    body?: object,
  ): Promise<{ changed: number; removed: number }> =>
    data({ method, path, query: buildQuery(filter, options), body, repeat: 'no' });

  const collection = {
    list: async (options: AnyListOptions = {}) => list(options),
    async *iterate(options: AnyListOptions = {}) {
      for (let cursor: string | null = 'start'; cursor !== null;) {
        const page: Page<never> = await list({ limit: 200, ...options, cursor });
        yield* page.items;
        cursor = page.nextCursor;
      }
    },
    count: async (filter?: object) =>
      (await data<{ count: number }>({ path, query: buildQuery(filter, { count: true }) })).count,
    get: async (id: string, options: AnyListOptions = {}) =>
      connection.send({ path: at(id), query: listQuery(options), signal: options.signal }),
    insert: (body: object) => connection.send({ method: 'POST', path, body, repeat: 'key' }),
    insertMany: async (body: readonly object[]) =>
      (await data<{ ids: string[] }>({ method: 'POST', path: `${path}/bulk`, body, repeat: 'key' })).ids,
    update: async (id: string, body: object, { ifMatch }: { ifMatch?: { updatedAt: string } | undefined } = {}) =>
      data({
        ...{ method: 'PATCH', path: at(id), body },
        ...(ifMatch && { headers: { 'if-match': `"${ifMatch.updatedAt}"` } }),
        ...((ifMatch || hasOperators(body)) && { repeat: 'key' }),
      }),
    async remove(id: string, { permanent }: { permanent?: boolean } = {}) {
      const query = buildQuery({}, { permanent });
      await twice(connection, { method: 'DELETE', path: at(id), query }, () => undefined);
    },
    async recover(id: string) {
      const call = { method: 'PATCH', path: `${at(id)}/recover` } as const;
      const made = async (): Promise<Enveloped<never>> => ({ data: await connection.send({ path: at(id) }) });
      return (await twice<Enveloped<never>>(connection, call, made)).data;
    },
    updateMatching: async (filter: object, body: object, { confirm }: { confirm: number }) =>
      (await matching('PATCH', filter, { confirm }, body)).changed,
    removeMatching: async (filter: object, options: { confirm: number; permanent?: boolean }) =>
      (await matching('DELETE', filter, options)).removed,
    async aggregate(pipeline: readonly object[], { includeDeleted, signal }: AnyListOptions = {}) {
      const query = buildQuery({}, { include_deleted: includeDeleted });
      const body = { pipeline: toPlain(pipeline, 'pipeline', true) };
      return data({ method: 'POST', path: `${path}/aggregate`, query, body, signal });
    },
    changes: async ({ filter, signal, ...rest }: AnyChangeOptions = {}) =>
      data({ path: `${path}/changes`, query: buildQuery(filter, { ...rest }), signal, wait: rest.wait }),
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
  includeDeleted?: boolean | 'only';
  signal?: AbortSignal;
}

interface AnyChangeOptions {
  filter?: object;
  fields?: readonly string[];
  populate?: readonly string[];
  since?: string;
  limit?: number;
  sort?: string | readonly string[];
  wait?: number;
  signal?: AbortSignal;
}

function listQuery({ filter, sort, limit, page, cursor, fields, populate, includeDeleted }: AnyListOptions): string {
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
