import type { ReplicationOptions, RxCollection, RxReplicationWriteToMasterRow, WithDeleted } from 'rxdb';
import { replicateRxCollection, type RxReplicationState } from 'rxdb/plugins/replication';
import type { ApiError } from './api-error.js';
import type { BatchCollection, BatchResult } from './batch.js';
import type { Client, Collection } from './client.js';
import type { CollectionName, FilterOf, UntypedProject } from './project.js';

export { newId } from './new-id.js';

/** Where the next pull goes on. */
export interface Checkpoint {
  cursor: string;
}

/** What to replicate with what; the rest is passed to `replicateRxCollection`, as `live` and `retryTime`. */
export interface ReplicateOptions<P, N extends CollectionName<P>, T> extends Partial<
  Omit<ReplicationOptions<T, Checkpoint>, 'collection' | 'deletedField' | 'pull' | 'push'>
> {
  /** One without an offline store: that is what RxDB is. */
  client: Client<P>;
  /** The collection of the project. */
  name: N;
  /** Only documents that match. */
  filter?: FilterOf<P, N>;
  /** The collection of RxDB, with `_id` as primary key. */
  collection: RxCollection<T>;
  /** Told of a change that the service refuses for good and that is therefore undone; otherwise `error$` is. */
  onRefused?: (error: ApiError, document: WithDeleted<T>) => void;
}

/** A document of any collection. */
type Doc = Record<string, unknown> & { _id: string; _deleted?: boolean; updatedAt?: string };
type Row = RxReplicationWriteToMasterRow<Doc>;
type Remote = Collection<UntypedProject, string>;
/** Of documents those that own writes have led to, until they are pulled. */
type Versions = Map<string, string>;
type Write = (documents: BatchCollection<UntypedProject, string>) => void;

const MAX_TRIES = 5;

/**
 * Replicates a collection of RxDB with one of the project, both ways and live. Of a document its changed fields are
 * sent; where others changed the same ones, or removed it, the conflict handler of the collection decides, and RxDB's
 * own takes what is stored. Waits while another user is signed in than at the beginning, or nobody.
 */
export function replicateBsvc<P, N extends CollectionName<P>, T>(
  given: ReplicateOptions<P, N, T>,
): RxReplicationState<T, Checkpoint> {
  // One implementation stands for the collections of every project's types, and uses what all documents have.
  const untyped = given as unknown as ReplicateOptions<UntypedProject, string, Doc>;
  const { client, name, filter, collection, onRefused, ...options } = untyped;
  const remote = client.collection(name);
  const filtered = { ...(filter && { filter }) };
  const versions: Versions = new Map();
  const refusals = new Set<string>();

  const userId = (): unknown => client.auth.user?._id;
  const whose = client.auth.ready.then(userId);
  let last: Promise<unknown> = whose;
  /** One after the other: what is pulled is never older than what was pushed before. */
  const inTurn =
    <A extends unknown[], R>(work: (...values: A) => Promise<R>) =>
    (...values: A): Promise<R> => {
      const run = async (): Promise<R> => {
        if (userId() !== (await whose)) throw new Error('Waits until its user signs in');
        return work(...values);
      };
      const mine = last.then(run, run);
      last = mine;
      return mine;
    };
  const refuse = (error: ApiError, mine: Doc): void => {
    if (onRefused) onRefused(error, mine as WithDeleted<Doc>);
    else state.subjects.error.next(error as never);
    const text = JSON.stringify(mine);
    // For a conflict handler that insists: RxDB waits before it tries again.
    if (refusals.delete(text)) throw error;
    refusals.add(text);
  };

  const pull = openPull(remote, filtered, collection, versions);
  const push = openPush(
    remote,
    (writes) => client.batch((batch) => writes.forEach((write) => write(batch.collection(name)))),
    versions,
    refuse,
  );
  /** Pushes that were answered: what is pulled of their documents RxDB passes over until it has noted the answers. */
  let unnoted = 0;
  const whenNoted = (then: () => void): unknown => state.internalReplicationState!.streamQueue.up.then(then);
  const state = replicateRxCollection<Doc, Checkpoint>({
    replicationIdentifier: `bsvc-${name}-${JSON.stringify(filter ?? {})}`,
    ...options,
    collection,
    pull: {
      handler: inTurn(async (checkpoint: Checkpoint | undefined, limit: number) => {
        if (unnoted === 0) return pull(checkpoint, limit);
        whenNoted(() => state.reSync());
        return { documents: [], checkpoint };
      }) as never,
    },
    push: {
      handler: inTurn(async (rows: readonly Row[]) => {
        const conflicts = await push(rows);
        unnoted++;
        whenNoted(() => unnoted--);
        return conflicts;
      }) as never,
    },
  });
  // A refusal is met, and told, by the pull.
  state.onCancel.push(
    remote.follow({ ...filtered, fields: ['_id'], since: 'now' }, ({ type }) => {
      if (type === 'ready' || type === 'error') state.reSync();
    }),
  );
  return state as never;
}

function openPull(remote: Remote, filtered: object, local: RxCollection<Doc>, versions: Versions) {
  /** What was pulled while there is more: RxDB may not have stored it yet. */
  const pulled = new Map<string, Doc>();
  return async (checkpoint: Checkpoint | undefined, limit: number) => {
    const documents = new Map<string, Doc>();
    let since = checkpoint?.cursor;
    let more = true;
    let isAnew = false;
    while (more && (isAnew || documents.size < limit)) {
      try {
        const page = await remote.changes({ limit, ...filtered, ...(since && { since }) });
        ({ cursor: since, more } = page);
        const stored = await local.findByIds(page.items.map(({ id }) => id)).exec();
        for (const item of page.items) {
          const known = pulled.get(item.id) ?? stored.get(item.id)?.toJSON();
          versions.delete(item.id);
          if (item.type === 'upsert') documents.set(item.id, item.document);
          else if (known) documents.set(item.id, { ...known, _deleted: true });
          else documents.delete(item.id);
        }
      } catch (error) {
        if (isAnew || !since || !/CURSOR/.test((error as ApiError).code)) throw error;
        // The log no longer says what was removed since: what does not come now is gone.
        isAnew = true;
        since = undefined;
        documents.clear();
      }
    }
    if (isAnew) {
      for (const known of [...(await local.find().exec()).map((each) => each.toJSON()), ...pulled.values()] as Doc[]) {
        if (!documents.has(known._id)) documents.set(known._id, { ...known, _deleted: true });
      }
    }
    if (more) documents.forEach((document, id) => pulled.set(id, document));
    else pulled.clear();
    return { documents: [...documents.values()], checkpoint: { cursor: since } };
  };
}

function openPush(
  remote: Remote,
  sendAll: (writes: readonly Write[]) => Promise<BatchResult[]>,
  versions: Versions,
  refuse: (error: ApiError, mine: Doc) => void,
) {
  const send = async (writes: readonly Write[]): Promise<void> => {
    for (const { id, document } of await sendAll(writes)) if (document) versions.set(id, document.updatedAt as string);
  };
  const read = async (_id: string): Promise<Doc | undefined> => (await remote.list({ filter: { _id } })).items[0];

  /** Sends one change of what is stored; answers that instead where it cannot be made. */
  const pushOne = async (change: Change): Promise<Doc[]> => {
    const { base, mine } = change;
    const gone = { ...(base ?? mine), _deleted: true };
    let isTaken = false;
    for (let left = MAX_TRIES; ; left--) {
      const theirs = await read(mine._id);
      if (theirs) {
        const names = leftOf(change, theirs);
        if (names.some((name) => !isSame(theirs[name], base?.[name]))) return [theirs];
        // RxDB has passed over a version that it pulled, and nothing is written that it would pull.
        if (!mine._deleted && names.length === 0) return theirs.updatedAt === mine.updatedAt ? [] : [theirs];
      } else if (mine._deleted || base) {
        return mine._deleted ? [] : [gone];
      }
      try {
        await send([writeOf(change, theirs, isTaken)]);
        return [];
      } catch (error) {
        isTaken = isOfId(error as ApiError);
        if (!isTaken && isRefusal(error as ApiError)) {
          refuse(error as ApiError, mine);
          return [(await read(mine._id)) ?? gone];
        }
        if (left === 0 || !(isTaken || STALE.test((error as ApiError).code))) throw error;
      }
    }
  };

  return async (rows: readonly Row[]): Promise<Doc[]> => {
    const conflicts: Doc[] = [];
    const changes = rows.map(changeOf);
    while (changes.length > 0) {
      let index = changes.findIndex((change) => assume(change, versions) === undefined);
      if (index < 0) {
        try {
          await send(changes.map((change) => writeOf(change, assume(change, versions))));
          break;
        } catch (error) {
          // All were refused because of one: that one for itself.
          index = indexOf(error as ApiError);
          if (index < 0) throw error;
        }
      }
      conflicts.push(...(await pushOne(changes.splice(index, 1)[0]!)));
    }
    return conflicts;
  };
}

/** A local change, as it is to be made of what is stored. */
interface Change {
  /** What was stored when it was made; undefined of a new document. */
  base: Doc | undefined;
  mine: Doc;
  /** The fields that it changes; null clears one. */
  fields: Record<string, unknown>;
}

function changeOf({ assumedMasterState, newDocumentState: mine }: Row): Change {
  const base = assumedMasterState?._deleted ? undefined : assumedMasterState;
  const names = mine._deleted ? [] : namesOf(base, mine).filter((name) => !isSame(base?.[name], mine[name]));
  return { base, mine, fields: Object.fromEntries(names.map((name) => [name, mine[name] ?? null])) };
}

/** What is stored, by all that is known here: null for nothing, undefined where it has to be read. */
function assume({ base, mine, fields }: Change, versions: ReadonlyMap<string, string>): Doc | null | undefined {
  if (!base) return mine._deleted ? undefined : null;
  const updatedAt = versions.get(base._id) ?? base.updatedAt;
  return updatedAt && (mine._deleted || Object.keys(fields).length > 0) ? { ...base, updatedAt } : undefined;
}

/** The fields that the change is about, and that are not as it leaves them: of a removal all. */
function leftOf({ base, mine, fields }: Change, theirs: Doc): string[] {
  // What was stored by this client and not pulled yet lacks what the service adds.
  if (mine._deleted) return namesOf(base, base?.updatedAt && theirs);
  return Object.keys(fields).filter((name) => !isSame(theirs[name], mine[name]));
}

function writeOf({ mine, fields }: Change, theirs: Doc | null | undefined, isTaken?: boolean): Write {
  const { _id: id } = mine;
  const options = { ifMatch: theirs as { updatedAt: string } };
  return (documents) => {
    if (mine._deleted) return documents.remove(id, options);
    if (theirs) return documents.update(id, fields, options);
    if (!isTaken) return documents.insert({ _id: id, ...fields });
    // In the trash.
    documents.recover(id);
    documents.update(id, fields);
  };
}

/** Names of fields that users set. */
const namesOf = (...documents: readonly unknown[]): string[] =>
  Object.keys(Object.assign({}, ...documents) as object).filter(
    (name) => !/^(_|(created|updated|deleted)At$|isDeleted$)/.test(name),
  );

const isSame = (a: unknown, b: unknown): boolean =>
  (a ?? null) === (b ?? null) ||
  (a === Object(a) &&
    b === Object(b) &&
    Object.keys({ ...(a as Doc), ...(b as Doc) }).every((name) => isSame((a as Doc)[name], (b as Doc)[name])));

/** The id of a new document is another one's. */
const isOfId = ({ status, details }: ApiError): boolean => status === 409 && details[0]?.field === '_id';
/** What a write meets when others were faster. */
const STALE = /^(CHANGED_MEANWHILE|DOCUMENT_NOT_FOUND)$/;
/**
 * Which of the writes that were sent is refused, and not the key, the session or the request; the first of a body that
 * is too large.
 */
const indexOf = ({ status, details }: ApiError): number =>
  (details?.[0] as { index?: number } | undefined)?.index ?? (status === 413 ? 0 : -1);
/** Sent again, it would be refused again. */
const isRefusal = (error: ApiError): boolean =>
  indexOf(error) >= 0 &&
  [400, 403, 409, 413, 422].includes(error.status) &&
  !error.retryAfter &&
  error.code !== 'QUOTA_EXCEEDED';
