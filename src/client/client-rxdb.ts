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
/** For a conflict handler that insists on a change which the service refuses. */
const REFUSED_AGAIN_MS = 5000;

/**
 * Replicates a collection of RxDB with one of the project, both ways and live. Of a document its changed fields are
 * sent; where others changed the same ones, or removed it, the conflict handler of the collection decides, and RxDB's
 * own takes what is stored. Waits while another user is signed in than at the beginning, or nobody.
 */
export function replicateBsvc<P, N extends CollectionName<P>, T>({
  client,
  name,
  filter,
  collection,
  onRefused,
  ...options
}: ReplicateOptions<P, N, T>): RxReplicationState<T, Checkpoint> {
  // One implementation stands for the collections of every project's types.
  const untyped = client as unknown as Client<UntypedProject>;
  const at: string = name;
  const remote = untyped.collection(at);
  const filtered = { ...(filter && { filter: filter as never }) };
  // Of the types of the application no more is used than what all documents have.
  const local = collection as unknown as RxCollection<Doc>;
  const versions: Versions = new Map();
  const refusals = new Map<string, string>();

  const userId = (): unknown => untyped.auth.user?._id;
  const whose = untyped.auth.ready.then(userId);
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
  const refuse = async (error: ApiError, mine: Doc): Promise<void> => {
    if (onRefused) onRefused(error, mine as never);
    else state.subjects.error.next(error as never);
    const text = JSON.stringify(mine);
    if (refusals.get(mine._id) === text) await local.promiseWait(REFUSED_AGAIN_MS);
    refusals.set(mine._id, text);
  };

  const state = replicateRxCollection<T, Checkpoint>({
    replicationIdentifier: `bsvc-${name}-${JSON.stringify(filter ?? {})}`,
    ...options,
    collection,
    pull: { handler: inTurn(openPull(remote, filtered, local, versions)) as never },
    push: {
      handler: inTurn(
        openPush(
          remote,
          (writes) => untyped.batch((batch) => writes.forEach((write) => write(batch.collection(at)))),
          versions,
          refuse,
        ),
      ) as never,
    },
  });
  if (options.live !== false) {
    // A refusal is met, and told, by the pull.
    const stop = remote.follow({ ...filtered, fields: ['_id'], since: 'now' }, ({ type }) => {
      if (type === 'ready' || type === 'error') state.reSync();
    });
    state.onCancel.push(stop);
  }
  return state;
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
  refuse: (error: ApiError, mine: Doc) => Promise<void>,
) {
  const send = async (...writes: Write[]): Promise<Doc[]> => {
    for (const { id, document } of await sendAll(writes)) if (document) versions.set(id, document.updatedAt as string);
    return [];
  };
  const read = (id: string): Promise<Doc | undefined> =>
    remote.get(id).catch((error: unknown) => {
      if ((error as ApiError).code !== 'DOCUMENT_NOT_FOUND') throw error;
    }) as Promise<Doc | undefined>;

  /** Sends one change; answers what is stored instead where it cannot be made. */
  const pushOne = async (change: Change): Promise<Doc[]> => {
    const { base, mine } = change;
    const gone = { ...(base ?? mine), _deleted: true };
    let assumed: Assumed | undefined = assume(change, versions);
    let isTaken = false;
    for (let tried = 0; ; tried++) {
      if (!assumed) {
        const theirs = await read(mine._id);
        if (!theirs && mine._deleted) return [];
        if (!theirs && base) return [gone];
        if (theirs && isConflict(change, theirs)) return [theirs];
        // RxDB has passed over a version that it pulled, and nothing is written that it would pull.
        if (theirs && isThere(change, theirs)) return theirs.updatedAt === mine.updatedAt ? [] : [theirs];
        assumed = { theirs };
      }
      try {
        return await send(writeOf(change, assumed.theirs, isTaken));
      } catch (thrown) {
        const error = thrown as ApiError;
        isTaken = error.status === 409 && error.details.some(({ field }) => field === '_id');
        if (isRefusal(error) && !isTaken) {
          await refuse(error, mine);
          return [(await read(mine._id)) ?? gone];
        }
        if (tried === MAX_TRIES || !(isTaken || STALE.test(error.code))) throw error;
        assumed = undefined;
      }
    }
  };

  return async (rows: readonly Row[]): Promise<Doc[]> => {
    const changes = rows.map(changeOf);
    const assumed = changes.map((change) => assume(change, versions));
    if (rows.length > 1 && !assumed.includes(undefined)) {
      try {
        return await send(...changes.map((change, at) => writeOf(change, assumed[at]!.theirs)));
      } catch (error) {
        // Of all together one was refused: each for itself.
        if (!isOfOne(error as ApiError)) throw error;
      }
    }
    const conflicts: Doc[] = [];
    for (const change of changes) conflicts.push(...(await pushOne(change)));
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

/** What is stored of a document: none for one that is not there. */
interface Assumed {
  theirs: Doc | undefined;
}

function changeOf({ assumedMasterState, newDocumentState: mine }: Row): Change {
  const base = assumedMasterState?._deleted ? undefined : assumedMasterState;
  const names = mine._deleted ? [] : namesOf(base, mine).filter((name) => !isSame(base?.[name], mine[name]));
  return { base, mine, fields: Object.fromEntries(names.map((name) => [name, mine[name] ?? null])) };
}

/** What is stored, by all that is known here; undefined where it has to be read. */
function assume({ base, mine, fields }: Change, versions: ReadonlyMap<string, string>): Assumed | undefined {
  if (!base) return mine._deleted ? undefined : { theirs: undefined };
  const updatedAt = [base.updatedAt ?? '', versions.get(base._id) ?? ''].sort()[1];
  return updatedAt && (mine._deleted || Object.keys(fields).length > 0)
    ? { theirs: { ...base, updatedAt } }
    : undefined;
}

/** Whether others changed what the change is about: of a removal everything. */
function isConflict({ base, mine, fields }: Change, theirs: Doc): boolean {
  // What was stored by this client and not pulled yet lacks what the service adds.
  const names = mine._deleted ? namesOf(base, base?.updatedAt && theirs) : Object.keys(fields);
  return names.some(
    (name) => !isSame(theirs[name], base?.[name]) && (mine._deleted || !isSame(theirs[name], mine[name])),
  );
}

const isThere = ({ mine, fields }: Change, theirs: Doc): boolean =>
  !mine._deleted && Object.keys(fields).every((name) => isSame(theirs[name], mine[name]));

function writeOf({ mine, fields }: Change, theirs: Doc | undefined, isTaken?: boolean): Write {
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

/** What a write meets when others were faster. */
const STALE = /^(CHANGED_MEANWHILE|DOCUMENT_NOT_FOUND)$/;
/** Of one of the writes that were sent, not of the key, the session or the request. */
const isOfOne = ({ details }: ApiError): boolean => details?.some((detail) => 'index' in detail);
/** Sent again, it would be refused again. */
const isRefusal = (error: ApiError): boolean =>
  isOfOne(error) && /^4(0[039]|13|22)$/.test(`${error.status}`) && !error.retryAfter && error.code !== 'QUOTA_EXCEEDED';
