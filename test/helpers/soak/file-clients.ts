import { createHash, randomBytes } from 'node:crypto';
import { complete, think, type SoakCaller, type SoakReply } from './caller.js';
import type { Random } from '../random.js';

export interface FileBooks {
  /** SHA-256 of each file whose upload was answered, by path. */
  confirmed: Map<string, string>;
  deleted: Set<string>;
}

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/**
 * Uploads in one step and by signed addresses, reads back and deletes, against a quota that is reached now and then.
 */
export async function runFileClient(caller: SoakCaller, random: Random, books: FileBooks): Promise<void> {
  const mine: string[] = [];
  while (!caller.over()) {
    await think(random, 60);
    if (mine.length < 3 || random.chance(0.5)) {
      const bytes = randomBytes(1000 + random.below(60_000));
      const path = random.chance(0.5) ? await upload(caller, bytes) : await uploadSigned(caller, bytes, random);
      if (path === 'full') mine.length = await removeSome(caller, mine, books);
      else if (path) {
        books.confirmed.set(path, hashOf(bytes));
        mine.push(path);
      }
    } else if (random.chance(0.5)) {
      await readBack(caller, random.pick(mine), books);
    } else {
      await remove(caller, mine.splice(random.below(mine.length), 1)[0]!, books);
    }
  }
}

const isFull = (reply: SoakReply): boolean => complete(reply, 403) && reply.body.code === 'QUOTA_EXCEEDED';

async function upload(caller: SoakCaller, bytes: Buffer): Promise<string | null> {
  const body = new FormData();
  body.set('file', new File([bytes], 'soak.png', { type: 'image/png' }));
  const reply = await caller.send('upload', 'POST', '/api/storage/upload', { body, allowed: [201, 403] });
  if (isFull(reply)) return 'full';
  return complete(reply, 201) ? (reply.body.path as string) : null;
}

async function uploadSigned(caller: SoakCaller, bytes: Buffer, random: Random): Promise<string | null> {
  const body = { filename: 'soak.png', contentType: 'image/png', size: bytes.length };
  const options = { body, allowed: [200, 201, 403, 429] };
  const requested = await caller.send('upload-request', 'POST', '/api/storage/upload-request', options);
  if (isFull(requested)) return 'full';
  if (!complete(requested, 200, 201)) return null;
  const { signedUrl, filePath } = requested.body as { signedUrl: string; filePath: string };
  try {
    await (
      await fetch(signedUrl, { method: 'PUT', headers: { 'content-type': 'image/png' }, body: bytes })
    ).arrayBuffer();
  } catch {
    return null;
  }
  // Some are never confirmed: the sweep has to take them.
  if (random.chance(0.2)) return null;
  const confirm = { body: { filePath, size: bytes.length }, allowed: [200, 403, 409] };
  const reply = await caller.send('upload-confirm', 'POST', '/api/storage/upload-confirm', confirm);
  if (isFull(reply)) return 'full';
  return complete(reply, 200) ? filePath : null;
}

async function remove(caller: SoakCaller, path: string, books: FileBooks): Promise<void> {
  // Unanswered, it may be there or not.
  const hash = books.confirmed.get(path)!;
  books.confirmed.delete(path);
  const reply = await caller.send('file-delete', 'DELETE', '/api/storage/file', { body: { path }, allowed: [200] });
  if (complete(reply, 200)) books.deleted.add(path);
  else if (reply) books.confirmed.set(path, hash);
}

async function removeSome(caller: SoakCaller, mine: string[], books: FileBooks): Promise<number> {
  for (const path of mine.splice(Math.ceil(mine.length / 2))) await remove(caller, path, books);
  return mine.length;
}

async function readBack(caller: SoakCaller, path: string, books: FileBooks): Promise<void> {
  try {
    const reply = await fetch(`${caller.url()}/files/${path}`);
    const bytes = new Uint8Array(await reply.arrayBuffer());
    if (reply.status === 503) return;
    if (reply.status !== 200) caller.violations.push(`file: ${path} answered ${reply.status}`);
    else if (hashOf(bytes) !== books.confirmed.get(path)) caller.violations.push(`file: ${path} has other bytes`);
  } catch {
    // Cut: it is read again another time.
  }
}
