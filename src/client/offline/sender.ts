import type { ApiError } from '../api-error.js';
import type { BatchResult } from '../batch.js';
import type { Call, Connection } from '../connection.js';
import { mergeChange, type Fields } from './change.js';
import { entriesOf, newestOf, placeOf, type Doc, type Entry, type Held, type Operation } from './replica.js';
import { isFull, STORED, type Changes, type LocalStore } from './store.js';

/** A change that met another one of the same field. */
export interface Conflict {
  collection: string;
  id: string;
  /** The change that was made here. */
  mine: Fields;
  /** The document as it is. */
  theirs: Doc;
  /** The document as it was when the change was made. */
  base: Doc;
}

/** What the application is told. */
export type OfflineEvent =
  /** How many writes have not been sent. */
  | { type: 'queue'; pending: number }
  /** Fields were changed elsewhere too, and are as they are there. */
  | ({ type: 'conflict' } & Conflict)
  /** The service does not accept these writes: they are dropped. */
  | { type: 'refused'; operations: Operation[]; error: { status: number; code: string; message: string } }
  /** This device cannot keep its database: the client goes on with the service alone. */
  | { type: 'fault'; message: string };

/** What the service answers an operation: undefined where that is not known any more. */
interface Result {
  document: Doc | null | undefined;
}

/** What the sender needs. */
export interface SenderParts {
  store: LocalStore;
  /** Carries a batch out; throws an ApiError. Null: it is no longer this user's turn. */
  post: (key: string, operations: readonly Operation[]) => Promise<Result[] | null>;
  /** A document as the service has it. */
  get: (collection: string, id: string) => Promise<Doc>;
  tell: (event: OfflineEvent) => void;
  onConflict: ((conflict: Conflict) => unknown) | undefined;
  /** Documents that the feed has told are gone while a batch was under way. */
  gone: Set<string>;
}

type Item = [string, Entry];
/** What becomes of items of the queue; null takes one out. */
type Next = Map<Item, Entry | null>;

const MAX_OPERATIONS = 100;
/** The service takes a mebibyte, in which a character may have three bytes. */
const MAX_CHARACTERS = 300_000;
/** The service knows a key for a day, by a clock that is not this one. */
const KNOWN_MS = 20 * 3600_000;

/** Sends what is in the queue, in its order and each once, until it is empty; throws what it has to wait for. */
export function openSender(parts: SenderParts): () => Promise<void> {
  const { store, post, get, tell, gone } = parts;
  /** The first one may have been sent alone, and nothing says so where the device was full. */
  let most = 1;
  /** What was in the queue at the beginning, where the device was full. */
  let doubtful: Set<string> | undefined;

  /** Changes items of the queue, unless somebody else has changed one of them. */
  const replace = async (next: Next, told: readonly OfflineEvent[] = [], isCertain = true): Promise<void> => {
    const build = (): Changes => new Map([...next].map(([[key], entry]) => [key, entry ?? undefined]));
    if (await store.commit(() => ifSame(store, [...next.keys()], build), isCertain)) told.forEach(tell);
  };
  /** They are no batch any more, and some are done; those that are refused for good are told. */
  const free = (items: readonly Item[], done: readonly Item[] = [], refusal?: Refusal): Promise<void> => {
    const next: Next = new Map(items.map((item) => [item, done.includes(item) ? null : freed(item[1])]));
    const tellOf = ({ status, code, message }: Refusal): OfflineEvent[] =>
      done.map(([, { operations }]) => ({ type: 'refused', operations, error: { status, code, message } }));
    return replace(next, refusal && tellOf(refusal));
  };

  /** The next items, as a batch. */
  const compose = async (): Promise<Item[]> => {
    for (;;) {
      const waiting = entriesOf(store);
      const { batch } = waiting[0]?.[1] ?? {};
      if (waiting.length === 0) return [];
      if (!batch) {
        const first = firstOf(waiting, most);
        const [place, { key, at }] = first[0]!;
        const fixed = { key, at: doubtful!.delete(place) ? Date.parse(at) : Date.now() };
        const versions = openVersions(first);
        const next = first.map((item): [Item, Entry] => {
          return [item, { ...item[1], operations: item[1].operations.map(versions), batch: fixed }];
        });
        // What cannot be noted of many is sent alone.
        await replace(new Map(next), [], first.length === 1).catch((error: unknown) => {
          if (first.length === 1 || !isFull(error)) throw error;
          most = 1;
        });
        continue;
      }
      const items = waiting.filter(([, each]) => each.batch?.key === batch.key);
      if (!isOld(batch)) return items;
      // It may have been carried out: what would be done twice is dropped.
      const isUnsafe = (item: Item): boolean => operationsOf([item]).some(({ body }) => namesOf(body).some(isOperator));
      await free(items, items.filter(isUnsafe), UNKNOWN);
    }
  };

  /** What a refusal means for a batch; throws it when there is nothing to do but to wait. */
  const resolve = async (items: readonly Item[], error: ApiError): Promise<void> => {
    const { status, code, retryAfter } = error;
    const [detail] = error.details as readonly { index?: number; field?: string }[];
    const operation = operationsOf(items)[detail?.index ?? -1];
    const item = items.find(([, { operations }]) => operations.includes(operation!));
    const isFinal = /^4(0[0349]|13|22)$/.test(`${status}`) && !retryAfter;
    if (item && operation && status === 412) {
      const { collection, id } = operation;
      const theirs = await get(collection, id).catch((thrown: unknown) => {
        if ((thrown as ApiError).status !== 404) throw thrown;
        return free(items, [item], thrown as ApiError);
      });
      if (!theirs) return;
      const told: OfflineEvent[] = [];
      const next = await rebased(parts, items, told, (each) =>
        placeOf(each) === placeOf(operation) ? theirs : newestOf(store.state.get(placeOf(each)) as Held),
      );
      return replace(next, told);
    }
    // Of many that are too much together, none is.
    if (isFinal && item && !(status === 413 && items.length > 1)) {
      // Its document is there, of a batch that was carried out without an answer.
      const isDone = item[1].isOld && code === 'DUPLICATE_VALUE' && detail?.field === '_id';
      return free(items, [item], isDone ? undefined : error);
    }
    // A body that is too large, or has what no body may have: which item that is shows when it is alone.
    if (!/^4(00|13|22)$/.test(`${status}`)) throw error;
    most = items.length >> 1;
    if (most > 0) return free(items);
    if (code !== 'IDEMPOTENCY_KEY_REUSED') return free(items, items, error);
    // It was carried out, for a version that a full device could not note.
    const results = operationsOf(items).map(async ({ collection, id }) => {
      return { document: await get(collection, id).catch(() => undefined) };
    });
    await settle(parts, items, await Promise.all(results));
  };

  return async () => {
    doubtful ??= new Set(store.state.has(STORED) ? [] : entriesOf(store).map(([key]) => key));
    for (;;) {
      const items = await compose();
      if (items.length === 0) return;
      gone.clear();
      try {
        const results = await post(items[0]![1].batch!.key, operationsOf(items));
        if (!results) return;
        most = MAX_OPERATIONS;
        await settle(parts, items, results);
      } catch (error) {
        if (!(error as Partial<ApiError>).details) throw error;
        await resolve(items, error as ApiError);
      }
    }
  };
}

/** What the service has answered is known, and what the next changes of these documents are made of. */
const settle = ({ store, gone }: SenderParts, items: readonly Item[], results: readonly Result[]): Promise<boolean> => {
  const build = (): Changes => {
    const { state } = store;
    const changes: Changes = new Map<string, unknown>(items.map(([key]) => [key, undefined]));
    // A tab that is just adding a write adds it again, based on the answers.
    changes.set('n', Number(state.get('n')) + 1);
    const answers = new Map<string, Doc>();
    operationsOf(items).forEach((operation, at) => {
      const place = placeOf(operation);
      const answer = operation.op === 'remove' ? null : results[at]?.document;
      if (answer) answers.set(place, answer);
      // A copy that has lost it has seen more than the answer says.
      const isTold = answer === undefined || (answer && gone.has(place)) || !state.has(`c/${operation.collection}`);
      if (!isTold) changes.set(place, { ...(state.get(place) as Held), answer });
    });
    for (const [key, entry] of entriesOf(store)) {
      if (changes.has(key)) continue;
      const rebase = (each: Operation): Operation => ({ ...each, base: answers.get(placeOf(each)) ?? each.base });
      if (entry.operations.some((each) => answers.has(placeOf(each)))) {
        changes.set(key, { ...entry, operations: entry.operations.map(rebase) });
      }
    }
    return changes;
  };
  return store.commit(() => ifSame(store, items, build), true);
};

/** Nothing if somebody else has changed an item of the queue. */
const ifSame = ({ state }: LocalStore, items: readonly Item[], build: () => Changes): Changes | null =>
  items.some(([key, entry]) => state.get(key) !== entry) ? null : build();

interface Refusal {
  status: number;
  code: string;
  message: string;
}

const UNKNOWN: Refusal = { status: 0, code: 'OUTCOME_UNKNOWN', message: 'Never answered' };

const isOld = ({ at }: { at: number }): boolean => Date.now() - at > KNOWN_MS;
const freed = ({ batch, ...entry }: Entry): Entry => ({ ...entry, isOld: entry.isOld || (batch && isOld(batch)) });

const operationsOf = (items: readonly Item[]): Operation[] => items.flatMap(([, { operations }]) => operations);

const namesOf = (body: Fields = {}): string[] => Object.keys(body);
/** Made twice, it changes twice. */
const isOperator = (name: string): boolean => name.startsWith('$');

const asSent = ({ op, collection, id, body, ifMatch }: Operation): object => ({
  op,
  collection,
  body,
  ifMatch,
  ...(op !== 'insert' && { id }),
});

/** Has the service carry out some operations, all or none. */
export async function sendBatch(
  connection: Connection,
  operations: readonly Operation[],
  more: Partial<Call> = {},
): Promise<BatchResult[]> {
  const body = { operations: operations.map(asSent) };
  const call = { method: 'POST', path: '/batch', body, repeat: 'key', ...more } as const;
  return (await connection.send<{ data: { results: BatchResult[] } }>(call)).data.results;
}

/** As many items as a batch takes, at least one. */
function firstOf(items: readonly Item[], most: number): Item[] {
  let [count, length] = [0, 0];
  return items.filter(([, { operations }], at) => {
    count += operations.length;
    length += JSON.stringify(operations.map(asSent)).length;
    return at === 0 || (count <= most && length <= MAX_CHARACTERS);
  });
}

/** Items with what is left of them now that documents are others than those that they were made of. */
async function rebased(
  { onConflict = () => undefined }: SenderParts,
  items: readonly Item[],
  told: OfflineEvent[],
  theirsOf: (operation: Operation) => Doc | undefined,
): Promise<Next> {
  const next: Next = new Map();
  for (const item of items) {
    const operations: Operation[] = [];
    for (const operation of item[1].operations) {
      const { collection, id, body: mine = {}, base } = operation;
      const theirs = base && theirsOf(operation);
      if (!theirs || theirs.updatedAt === base.updatedAt) {
        operations.push(operation);
        continue;
      }
      const { left: kept, lost } = mergeChange(mine, base, theirs);
      let left = kept;
      if (lost.length > 0) {
        const conflict = { collection, id, mine, theirs, base };
        const decided = await Promise.resolve(conflict)
          .then(onConflict)
          .catch(() => undefined);
        if (decided instanceof Object) left = decided as Fields;
        else told.push({ type: 'conflict', ...conflict });
      }
      if (Object.keys(left).length > 0) operations.push({ ...operation, body: left, base: theirs });
    }
    next.set(item, operations.length > 0 ? freed({ ...item[1], operations }) : null);
  }
  return next;
}

/**
 * Gives the first change of each document the version that it was made of, where one of them names values; the others
 * see what it leaves.
 */
function openVersions(items: readonly Item[]): (operation: Operation) => Operation {
  const bound = new Set(
    operationsOf(items)
      .filter(({ body }) => !namesOf(body).every(isOperator))
      .map(placeOf),
  );
  return (operation) => {
    const { base } = operation;
    // Later ones do not find it any more.
    const isFirst = bound.delete(placeOf(operation));
    return { ...operation, ifMatch: isFirst && base ? `"${base.updatedAt}"` : undefined };
  };
}
