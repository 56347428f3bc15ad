import { complete, think, type SoakCaller, type SoakReply } from './caller.js';
import type { Random } from '../random.js';

export type DocumentState = 'active' | 'trashed' | 'gone';

/**
 * What a client knows of one document. `mayBe` holds more than one value after a request without an answer; the client
 * leaves it alone from then on.
 */
export interface DocumentBook {
  tag: string;
  /** null when the creation was not answered. */
  id: string | null;
  mayBe: { rev: number; state: DocumentState }[];
  /** Actions as webhooks tell them, answered and unanswered. */
  acknowledged: string[];
  unsure: string[];
}

export interface DocumentBooks {
  documents: DocumentBook[];
  /** Batches of a bulk insert: answered or not. */
  batches: Map<string, boolean>;
  /** Creations with an Idempotency-Key, repeated until answered: the id answered by key. */
  orders: Map<string, string>;
}

export const BATCH_SIZE = 20;

/**
 * Creates, changes, trashes, recovers and removes documents of `notes` one after the other, reading each back now and
 * then.
 */
export async function runDocumentClient(
  caller: SoakCaller,
  name: string,
  random: Random,
  books: DocumentBooks,
): Promise<void> {
  const open: DocumentBook[] = [];
  for (let made = 0; !caller.over();) {
    await think(random);
    if (open.length < 5 || random.chance(0.2)) {
      const book = await create(caller, `${name}-${made++}`);
      books.documents.push(book);
      if (book.id) open.push(book);
      continue;
    }
    const book = random.pick(open);
    const isLast = await change(caller, book, random);
    if (isLast) open.splice(open.indexOf(book), 1);
  }
}

async function create(caller: SoakCaller, tag: string): Promise<DocumentBook> {
  const reply = await caller.send('create', 'POST', '/api/data/notes', { body: { tag, rev: 0 } });
  const active = { rev: 0, state: 'active' as const };
  if (complete(reply, 201))
    return { tag, id: reply.body._id as string, mayBe: [active], acknowledged: ['insert'], unsure: [] };
  return { tag, id: null, mayBe: [active, { rev: 0, state: 'gone' }], acknowledged: [], unsure: ['insert'] };
}

/** One random change; true when the document is left alone from now on. */
async function change(caller: SoakCaller, book: DocumentBook, random: Random): Promise<boolean> {
  const [now] = book.mayBe as [DocumentBook['mayBe'][number]];
  const path = `/api/data/notes/${book.id}`;
  if (random.chance(0.15)) {
    await readBack(caller, book);
    return false;
  }
  const step =
    now.state === 'trashed'
      ? { action: 'recover', method: 'PATCH', path: `${path}/recover`, next: { ...now, state: 'active' as const } }
      : random.chance(0.7)
        ? { action: 'update', method: 'PATCH', path, next: { ...now, rev: now.rev + 1 } }
        : random.chance(0.5)
          ? { action: 'delete', method: 'DELETE', path, next: { ...now, state: 'trashed' as const } }
          : {
              action: 'delete',
              method: 'DELETE',
              path: `${path}?permanent=true`,
              next: { ...now, state: 'gone' as const },
            };
  const body = step.action === 'update' ? { rev: step.next.rev } : undefined;
  const reply = await caller.send(step.action, step.method, step.path, { ...(body && { body }), allowed: [200] });
  if (complete(reply, 200)) {
    book.mayBe = [step.next];
    book.acknowledged.push(step.action);
    return step.next.state === 'gone';
  }
  book.mayBe = [now, step.next];
  book.unsure.push(step.action);
  return true;
}

/** What was answered must be seen at once, whichever process answers. */
async function readBack(caller: SoakCaller, book: DocumentBook): Promise<void> {
  const [now] = book.mayBe as [DocumentBook['mayBe'][number]];
  const path = `/api/data/notes/${book.id}${now.state === 'trashed' ? '?include_deleted=true' : ''}`;
  const reply = await caller.send('read', 'GET', path, { allowed: [200] });
  if (complete(reply, 200) && reply.body.rev !== now.rev)
    caller.violations.push(`read: ${book.tag} has rev ${String(reply.body.rev)}, answered was ${now.rev}`);
}

/** Inserts batches that must be there whole or not at all. */
export async function runBulkClient(caller: SoakCaller, random: Random, books: DocumentBooks): Promise<void> {
  for (let made = 0; !caller.over(); made++) {
    const batch = `batch-${made}`;
    const body = Array.from({ length: BATCH_SIZE }, (_, n) => ({ batch, n }));
    const reply = await caller.send('bulk', 'POST', '/api/data/batches/bulk', { body, allowed: [201] });
    books.batches.set(batch, complete(reply, 201));
    await think(random, 150);
  }
}

/** Older batches are left to the comparison at the end. */
const RECENT_MS = 20_000;

/** Reads batches in every way, all the time: whatever was killed meanwhile, no reader may ever see a part of one. */
export async function runBatchReader(caller: SoakCaller, random: Random, books: DocumentBooks): Promise<void> {
  const path = '/api/data/batches';
  const send = (method: string, query: string, body?: object): Promise<SoakReply> =>
    caller.send('read batches', method, `${path}${query}`, { ...(body && { body }), allowed: [200] });
  const judge = (how: string, count: number): void => {
    if (count % BATCH_SIZE !== 0) caller.violations.push(`${how} shows a part of a batch: ${count}`);
  };
  while (!caller.over()) {
    const latest = `batch-${books.batches.size}`;
    // All documents of a batch were created at one moment.
    const since = new Date(Date.now() - RECENT_MS).toISOString();
    const recent = { createdAt: { $gte: { $date: since } } };
    const pipeline = [{ $match: recent }, { $group: { _id: '$batch', n: { $sum: 1 } } }];
    const [list, count, groups] = await Promise.all([
      send('GET', `?batch=${latest}&limit=100`),
      send('GET', `?count=true&createdAt_gte=${encodeURIComponent(since)}`),
      send('POST', '/aggregate', { pipeline }),
    ]);
    if (complete(list, 200)) judge(`a list of ${latest}`, (list.body.data as { items: unknown[] }).items.length);
    if (complete(count, 200)) judge('a count', (count.body.data as { count: number }).count);
    for (const { _id, n } of (complete(groups, 200) ? groups.body.data : []) as { _id: string; n: number }[])
      judge(`an aggregation (${_id})`, n);
    await walkBatches(send, judge, random.below(4));
    await think(random, 50);
  }
}

/** Some pages in the order of creation; the last batch seen may go on in the next page. */
async function walkBatches(
  send: (method: string, query: string) => Promise<SoakReply>,
  judge: (how: string, count: number) => void,
  pages: number,
): Promise<void> {
  const counts = new Map<string, number>();
  let last = '';
  for (let cursor: string | null = 'start', page = 0; cursor !== null && page < pages; page++) {
    const reply = await send('GET', `?limit=70&cursor=${encodeURIComponent(cursor)}`);
    if (!complete(reply, 200)) return;
    const { items, nextCursor } = reply.body.data as { items: { batch: string }[]; nextCursor: string | null };
    for (const { batch } of items) counts.set((last = batch), (counts.get(batch) ?? 0) + 1);
    cursor = nextCursor;
    if (cursor === null) last = '';
  }
  for (const [batch, count] of counts) if (batch !== last) judge(`a walk (${batch})`, count);
}

/** Repeats each creation with its Idempotency-Key until it is answered. */
export async function runOrderClient(caller: SoakCaller, random: Random, books: DocumentBooks): Promise<void> {
  for (let made = 0; !caller.over(); made++) {
    const key = `order-${made}`;
    for (let tries = 0; tries < 1000 && !books.orders.has(key); tries++) {
      const options = { body: { key }, headers: { 'idempotency-key': key }, allowed: [201, 409] };
      const reply = await caller.send('order', 'POST', '/api/data/orders', options);
      if (complete(reply, 201)) books.orders.set(key, reply.body._id as string);
      else if (caller.over()) return;
      await think(random, 50);
    }
  }
}
