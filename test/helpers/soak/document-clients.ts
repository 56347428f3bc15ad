import { complete, think, type SoakCaller } from './caller.js';
import type { Random } from '../random.js';

export type DocumentState = 'active' | 'trashed' | 'gone';

/** What a client knows of one document. `mayBe` holds more than one value after a request without an answer; the client leaves it alone from then on. */
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

/** Creates, changes, trashes, recovers and removes documents of `notes` one after the other, reading each back now and then. */
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
