import type { BatchResult } from '../batch.js';
import type { Page } from '../collection.js';
import type { Fields } from './change.js';
import type { Doc, Operation } from './replica.js';
import { sendBatch } from './sender.js';
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

/** `collection` and `batch` of a client with a local database: what that cannot do, the client's own do. */
export function openCollections(parts: Parts): Pick<Plain, 'collection' | 'batch'> {
  const { plain, tools, watches, collections } = parts;
  const write = openWriter(parts);
  return {
    collection(of) {
      const online = plain.collection(of);
      if (collections && !collections.includes(of)) return online;
      const writes = openWrites(tools, write, of);
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
      build({ collection: (of: string) => openWrites(tools, add, of) } as never);
      return write(operations);
    },
  };
}

/** What there is to read of a collection. */
function openReads({ plain, watches, current, fault }: Parts, of: string) {
  const online = plain.collection(of);
  /** Documents of the device that some options show; null where the service has to answer. */
  const read = async (options: WatchOptions): Promise<Doc[] | null> => {
    const select = watches.read(options);
    const session = select && (await current());
    if (!session || session.isOnline(of)) return null;
    await session.want(of).catch(fault);
    return !session.isOnline(of) && session.isShown(of) ? select(session.shown(of)) : null;
  };
  return {
    async list(options: WatchOptions = {}): Promise<Page<Doc>> {
      const found = await read(options);
      if (!found) return online.list(options as never) as Promise<never>;
      const { limit = 20, page = 1 } = options;
      const items = found.slice((page - 1) * limit, page * limit);
      return { items, total: found.length, limit, page, nextCursor: null };
    },
    async *iterate(options: WatchOptions = {}) {
      yield* (await read(options)) ?? online.iterate(options as never);
    },
    count: async (filter: Fields = {}) => (await read({ filter }))?.length ?? online.count(filter as never),
    async get(id: string, options: WatchOptions = {}) {
      const [found] = (await read({ ...options, filter: { _id: id } })) ?? [];
      return found ?? online.get(id, options as never);
    },
  };
}

type Write = (operations: Operation[]) => Promise<BatchResult[]>;

/** Puts writes into the queue, and answers what is shown of them; the service takes what this device cannot. */
const openWriter =
  ({ tools, current, fault }: Parts): Write =>
  async (operations) => {
    const session = await current();
    const isAdded = await session?.add(operations).catch(fault);
    if (!session || isAdded === null) return sendBatch(tools.connection, operations);
    return operations.map((each) => ({ id: each.id, document: shownBy(session, each) }));
  };

const shownBy = (session: LocalSession, { op, collection, id, body }: Operation): Doc | null =>
  op === 'remove' ? null : (session.shown(collection).get(id) ?? ({ ...body, _id: id } as Doc));

/** The writes of a collection, which are answered when they are in the queue. */
function openWrites({ toPlain, randomKey }: Tools, write: Write, collection: string) {
  const one = async (operation: Operation): Promise<unknown> => (await write([operation]))[0]!.document;
  const insertion = (document: object): Operation => {
    // Ids of one time are beside each other, as those that the service gives.
    const _id = Math.floor(Date.now() / 1000).toString(16) + randomKey().slice(0, 16);
    const body = toPlain({ _id, ...document }, '') as Doc;
    return { op: 'insert', collection, id: body._id, body };
  };
  return {
    insert: (document: object) => one(insertion(document)),
    insertMany: async (documents: readonly object[]) => (await write(documents.map(insertion))).map(({ id }) => id),
    update: (id: string, changes: object, { ifMatch }: { ifMatch?: { updatedAt: string } | undefined } = {}) =>
      one({
        ...{ op: 'update', collection, id, body: toPlain(changes, '') as Fields },
        ...(ifMatch && { base: { ...ifMatch, _id: id }, ifMatch: `"${ifMatch.updatedAt}"` }),
      }),
    remove: async (id: string) => void (await one({ op: 'remove', collection, id })),
    recover: (id: string) => one({ op: 'recover', collection, id }),
  };
}
