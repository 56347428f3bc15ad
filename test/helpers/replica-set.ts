import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { deserialize, serialize, type Binary, type Document } from 'bson';
import type { Engine } from '../../src/engine/index.js';

/** A MongoDB that looks like a replica set of one member, as far as bsvc uses one. */
export interface ReplicaSet {
  uri: string;
  /** How transactions have ended, and how often one was told to begin again. */
  ended: { committed: number; aborted: number; conflicts: number; lostCommits: number };
  close(): Promise<void>;
}

const HEAD_BYTES = 16;
const OP_MSG = 2013;
/** Flags, then the kind of the first section, which is the command. */
const BODY_AT = HEAD_BYTES + 5;
const SET_NAME = 'rs0';
const WRITES = new Set(['insert', 'update', 'delete', 'findAndModify']);
const FREE = new Set(['hello', 'ismaster', 'isMaster', 'ping', 'endSessions', 'buildInfo', 'killCursors', 'getMore']);
/** Of so many transactions one meets a conflict, at one of its first writes. */
const CONFLICT_EVERY = 4;
const WRITES_BEFORE = 3;
/** Of so many commits one is not answered. */
const LOST_COMMIT_EVERY = 5;

interface Transaction {
  key: string;
  /** What the collections held that it has written to. */
  before: Map<string, Document[]>;
  /** Writes until one conflicts. */
  left: number;
}

/**
 * Puts a gate before the engine's own listener. Transactions are carried out one at a time while nobody else does
 * anything; to abort one, its collections are put back. Now and then a write conflicts, and the answer of a commit is
 * lost.
 */
export async function startReplicaSet(engine: Engine): Promise<ReplicaSet> {
  const inner = new URL((await engine.listen('127.0.0.1:0')).uri);
  const sockets = new Set<Socket>();
  const ended = { committed: 0, aborted: 0, conflicts: 0, lostCommits: 0 };
  let open: Transaction | null = null;
  let working = 0;
  let begun = 0;
  let waiting: (() => void)[] = [];
  const wake = (): void => {
    const all = waiting;
    waiting = [];
    for (const resume of all) resume();
  };
  /** Claims at once: nobody else may come between the look and what follows it. */
  const claim = async (isFree: () => boolean, take: () => void): Promise<void> => {
    while (!isFree()) await new Promise<void>((resolve) => waiting.push(resolve));
    take();
  };
  const finish = (how: 'committed' | 'aborted'): void => {
    open = null;
    ended[how]++;
    wake();
  };

  async function keep({ before }: Transaction, db: string, name: string): Promise<void> {
    if (before.has(`${db}.${name}`)) return;
    const rows = (await engine.db(db).collection(name).find({}, { raw: true }).toArray()) as unknown as Buffer[];
    before.set(
      `${db}.${name}`,
      rows.map((row) => deserialize(row, { promoteValues: false })),
    );
  }
  async function putBack({ before }: Transaction): Promise<void> {
    for (const [ns, documents] of before) {
      const dot = ns.indexOf('.');
      const stored = engine.db(ns.slice(0, dot)).collection(ns.slice(dot + 1));
      await stored.deleteMany({});
      if (documents.length > 0) await stored.insertMany(documents as never);
    }
  }

  /** The answer of the gate itself, or null where the engine answers. */
  async function decide(command: Document, name: string): Promise<Document | null> {
    const { lsid, txnNumber, autocommit } = command as {
      lsid?: { id: Binary };
      txnNumber?: unknown;
      autocommit?: boolean;
    };
    if (autocommit !== false) {
      if (FREE.has(name)) return null;
      await claim(
        () => open === null,
        () => working++,
      );
      return null;
    }
    const key = `${lsid!.id.toString('hex')} ${String(txnNumber)}`;
    if (command.startTransaction === true) {
      await claim(
        () => open === null && working === 0,
        () => {
          begun++;
          // The next attempt goes through, however many writes it has.
          const left = begun % CONFLICT_EVERY === 0 ? 1 + (begun % WRITES_BEFORE) : Infinity;
          open = { key, before: new Map(), left };
        },
      );
    }
    if (name === 'commitTransaction') {
      if (open?.key === key) finish('committed');
      if (ended.committed % LOST_COMMIT_EVERY !== 0) return { ok: 1 };
      ended.committed++;
      ended.lostCommits++;
      return refusal(91, 'the answer was lost', ['UnknownTransactionCommitResult', 'RetryableWriteError']);
    }
    if (open?.key !== key) return refusal(251, 'no such transaction', ['TransientTransactionError']);
    if (name === 'abortTransaction') {
      await putBack(open);
      finish('aborted');
      return { ok: 1 };
    }
    if (!WRITES.has(name)) return null;
    if (--open.left === 0) {
      ended.conflicts++;
      await putBack(open);
      finish('aborted');
      return refusal(112, 'write conflict', ['TransientTransactionError']);
    }
    await keep(open, command.$db as string, command[name] as string);
    return null;
  }

  /** The engine's answer to one message of a connection, with what a replica set adds. */
  async function answer(frame: Buffer, ask: (frame: Buffer) => Promise<Buffer>): Promise<Buffer> {
    if (frame.readInt32LE(12) !== OP_MSG) return withHello(await ask(frame), HEAD_BYTES + 20);
    const size = frame.readInt32LE(BODY_AT);
    const command = deserialize(frame.subarray(BODY_AT, BODY_AT + size), { promoteValues: false });
    const plain = deserialize(frame.subarray(BODY_AT, BODY_AT + size));
    const name = Object.keys(plain)[0]!;
    const own = await decide(plain, name);
    if (own) return reply(frame, own);
    const isCounted = plain.autocommit !== false && !FREE.has(name);
    for (const field of [
      'txnNumber',
      'autocommit',
      'startTransaction',
      'readConcern',
      '$clusterTime',
      'commitQuorum',
    ]) {
      delete command[field];
    }
    const body = serialize(command, { ignoreUndefined: false });
    const passed = Buffer.concat([frame.subarray(0, BODY_AT), body, frame.subarray(BODY_AT + size)]);
    passed.writeInt32LE(passed.length, 0);
    try {
      const answered = await ask(passed);
      if (name === 'hello' || name.toLowerCase() === 'ismaster') return withHello(answered, BODY_AT);
      return name === 'buildInfo' ? withBuild(answered) : answered;
    } finally {
      if (isCounted) working--;
      wake();
    }
  }

  const server = createServer((socket) => {
    const upstream = connect({ host: inner.hostname, port: Number(inner.port) });
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(each);
          socket.destroy();
          upstream.destroy();
        });
    }
    const answers: ((frame: Buffer) => void)[] = [];
    readFrames(upstream, (frame) => answers.shift()?.(frame));
    const ask = (frame: Buffer): Promise<Buffer> =>
      new Promise((resolve) => {
        answers.push(resolve);
        upstream.write(frame);
      });
    let last = Promise.resolve();
    readFrames(socket, (frame) => {
      last = last.then(async () => void socket.write(await answer(frame, ask)));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const member = {
    setName: SET_NAME,
    setVersion: 1,
    hosts: [address],
    primary: address,
    me: address,
    secondary: false,
  };
  const withHello = (frame: Buffer, at: number): Buffer => withFields(frame, at, member);
  return {
    // All others wait for a transaction, each on a connection: what comes next in it needs one more.
    uri: `mongodb://${address}/?replicaSet=${SET_NAME}&maxPoolSize=1000`,
    ended,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As MongoDB itself says it was built. */
function withBuild(frame: Buffer): Buffer {
  return withFields(frame, BODY_AT, { modules: [], javascriptEngine: 'mozjs', allocator: 'tcmalloc' });
}

function withFields(frame: Buffer, at: number, fields: Document): Buffer {
  const body = deserialize(frame.subarray(at), { promoteValues: false });
  const front = Buffer.from(frame.subarray(0, at));
  const changed = Buffer.concat([front, serialize({ ...body, ...fields })]);
  changed.writeInt32LE(changed.length, 0);
  return changed;
}

function refusal(code: number, errmsg: string, errorLabels: string[]): Document {
  return { ok: 0, code, errmsg, errorLabels };
}

function reply(asked: Buffer, body: Document): Buffer {
  const front = Buffer.alloc(BODY_AT);
  front.writeInt32LE(asked.readInt32LE(4), 8);
  front.writeInt32LE(OP_MSG, 12);
  const whole = Buffer.concat([front, serialize(body)]);
  whole.writeInt32LE(whole.length, 0);
  return whole;
}

function readFrames(socket: Socket, take: (frame: Buffer) => void): void {
  let received = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= HEAD_BYTES && received.length >= received.readInt32LE(0)) {
      const size = received.readInt32LE(0);
      take(received.subarray(0, size));
      received = received.subarray(size);
    }
  });
}
