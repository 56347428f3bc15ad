import type { BatchResult } from '../batch.js';
import type { Page } from '../collection.js';
import type { Fields } from './change.js';
import type { Doc, Operation } from './replica.js';
import type { Plain, LocalSession, Tools } from './session.js';
import type { WatchOptions, Watches } from './watches.js';

interface Parts {
  plain: Plain;
  tools: Tools;
  watches: Watches;
  current: () => Promise<LocalSession | null>;
  fault: (error: unknown) => null;
  /** Names of those that are kept; undefined for all. */
  collections: readonly string[] | undefined;
}

interface ReadOptions extends WatchOptions {
  page?: number;
  cursor?: string;
  includeDeleted?: unknown;
}

/** `collection` and `batch` of a client with a local database: what that cannot do, the client's own do. */
export function openCollections(parts: Parts): Pick<Plain, 'collection' | 'batch'> {
  const { plain, watches, collections } = parts;
  const write = openWriter(parts);
  return {
    collection(of) {
      const online = plain.collection(of);
      if (collections && !collections.includes(of)) return online;
      const writes = openWrites(parts, write, of);
      return {
        ...online,
        ...openReads(parts, of),
        ...writes,
        remove: (id: string, options?: { permanent?: boolean }) =>
          options?.permanent ? online.remove(id, options) : writes.remove(id),
        follow: watches.follow(of),
      } as never;
    },
    async batch(build) {
      const operations: Operation[] = [];
      const add = (added: Operation[]): Promise<never> => (operations.push(...added), Promise.resolve(added as never));
      build({ collection: (of: string) => openWrites(parts, add, of) } as never);
      const results = await write(operations);
      return results ?? plain.batch(build);
    },
  };
}

/** What there is to read of a collection. */
function openReads({ plain, watches, current, fault }: Parts, of: string) {
  const online = plain.collection(of);
  /** Documents of the device that some options show; null where the service has to answer. */
  const read = async (options: ReadOptions): Promise<Doc[] | null> => {
    const { cursor, includeDeleted } = options;
    const select = cursor !== undefined || includeDeleted ? null : watches.read(options);
    const session = select && (await current());
    if (!session || session.isOnline(of)) return null;
    await session.want(of).catch(fault);
    return !session.isOnline(of) && session.isShown(of) ? select(session.shown(of)) : null;
  };
  return {
    async list(options: ReadOptions = {}): Promise<Page<Doc>> {
      const found = await read(options);
      if (!found) return online.list(options as never) as Promise<never>;
      const { limit = 20, page = 1 } = options;
      const items = found.slice((page - 1) * limit, page * limit);
      return { items, total: found.length, limit, page, nextCursor: null };
    },
    async *iterate(options: ReadOptions = {}) {
      yield* (await read(options)) ?? online.iterate(options as never);
    },
    count: async (filter: Fields = {}) => (await read({ filter }))?.length ?? online.count(filter as never),
    async get(id: string, options: ReadOptions = {}) {
      const [found] = (await read({ ...options, filter: { _id: id } })) ?? [];
      return found ?? online.get(id, options as never);
    },
  };
}

type Write = (operations: Operation[]) => Promise<BatchResult[] | null>;

/** Puts writes into the queue, and answers what is shown of them; null where this device cannot. */
const openWriter =
  ({ current, fault }: Parts): Write =>
  async (operations) => {
    const session = await current();
    try {
      await session?.add(operations);
    } catch (error) {
      return fault(error);
    }
    return session && operations.map((each) => ({ id: each.id, document: shownBy(session, each) }));
  };

const shownBy = (session: LocalSession, { op, collection, id, body }: Operation): Doc | null =>
  op === 'remove' ? null : (session.shown(collection).get(id) ?? ({ ...body, _id: id } as Doc));

/** The writes of a collection, which are answered when they are in the queue. */
function openWrites({ plain, tools }: Parts, write: Write, of: string) {
  const online = plain.collection(of);
  const { insert, update, state } = operationsOn(tools, of);
  const one = async (operation: Operation, without: () => Promise<unknown>): Promise<unknown> => {
    const results = await write([operation]);
    return results ? results[0]!.document : without();
  };
  return {
    insert(document: object) {
      const operation = insert(document);
      return one(operation, () => online.insert(operation.body!));
    },
    async insertMany(documents: readonly object[]) {
      const operations = documents.map(insert);
      const results = await write(operations);
      return results?.map(({ id }) => id) ?? online.insertMany(operations.map(({ body }) => body!));
    },
    update: (...words: Parameters<typeof update>) =>
      one(update(...words), () => online.update(...(words as [string, object]))),
    remove: async (id: string) => void (await one(state('remove', id), () => online.remove(id))),
    recover: (id: string) => one(state('recover', id), () => online.recover(id)),
  };
}

interface Written {
  insert: (document: object) => Operation;
  update: (id: string, changes: object, options?: { ifMatch?: { updatedAt: string } | undefined }) => Operation;
  state: (op: 'remove' | 'recover', id: string) => Operation;
}

function operationsOn({ toPlain, randomKey }: Tools, collection: string): Written {
  return {
    insert(document) {
      // Ids of one time are beside each other, as those that the service gives.
      const _id = Math.floor(Date.now() / 1000).toString(16) + randomKey().slice(0, 16);
      const body = toPlain({ _id, ...document }, '') as Doc;
      return { op: 'insert', collection, id: body._id, body };
    },
    update(id, changes, { ifMatch } = {}) {
      const body = toPlain(changes, '') as Fields;
      return { op: 'update', collection, id, body, ...(ifMatch && { base: { ...ifMatch, _id: id } }) };
    },
    state: (op, id) => ({ op, collection, id }),
  };
}
