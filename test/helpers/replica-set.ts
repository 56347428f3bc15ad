import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { deserialize, serialize, type Document } from 'bson';
import type { Engine } from '../../src/engine/index.js';

/** A MongoDB that looks like a replica set of one member, as far as bsvc uses one. */
export interface ReplicaSet {
  uri: string;
  /** How many transactions were told to begin again, and how many answers of commits were lost. */
  met: { conflicts: number; lostCommits: number };
  close(): Promise<void>;
}

const HEAD_BYTES = 16;
const OP_MSG = 2013;
/** Flags, then the kind of the first section, which is the command. */
const BODY_AT = HEAD_BYTES + 5;
/** The size of the command and the type of its first field come before that field's name. */
const NAME_AT = BODY_AT + 5;
const SET_NAME = 'rs0';
/** Of so many transactions one meets a conflict, at one of its first commands. */
const CONFLICT_EVERY = 4;
const COMMANDS_BEFORE = 3;
/** Of so many commits one is not answered. */
const LOST_COMMIT_EVERY = 5;

/**
 * Puts a gate before the engine's own listener, which carries out the transactions. It says of the engine what a
 * replica set says; now and then it has a command of a transaction conflict, or loses the answer of a commit.
 */
export async function startReplicaSet(engine: Engine): Promise<ReplicaSet> {
  const inner = new URL((await engine.listen('127.0.0.1:0')).uri);
  const sockets = new Set<Socket>();
  const met = { conflicts: 0, lostCommits: 0 };
  let begun = 0;
  let committed = 0;
  /** Commands until one conflicts, of each transaction for which one will. */
  const left = new Map<string, number>();

  /** The answer of the gate itself in the place of the engine's, null where that stands. */
  function interfere(command: Document, name: string): Document | null {
    const { lsid, txnNumber, startTransaction } = command as {
      lsid: { id: { toString(form: 'hex'): string } };
      txnNumber: unknown;
      startTransaction?: boolean;
    };
    if (name === 'abortTransaction') return null;
    if (name === 'commitTransaction') {
      if (++committed % LOST_COMMIT_EVERY !== 0) return null;
      met.lostCommits++;
      return refusal(262, 'the answer was lost', ['UnknownTransactionCommitResult', 'RetryableWriteError']);
    }
    const key = `${lsid.id.toString('hex')} ${String(txnNumber)}`;
    if (startTransaction === true && ++begun % CONFLICT_EVERY === 0) left.set(key, 1 + (begun % COMMANDS_BEFORE));
    const count = left.get(key);
    if (count === undefined) return null;
    left.set(key, count - 1);
    if (count > 1) return null;
    left.delete(key);
    met.conflicts++;
    return refusal(112, 'write conflict', ['TransientTransactionError']);
  }

  /** The engine's answer to one message of a connection, with what a replica set adds. */
  async function answer(frame: Buffer, ask: (frame: Buffer) => Promise<Buffer>): Promise<Buffer> {
    const answered = await ask(frame);
    if (frame.readInt32LE(12) !== OP_MSG) return withFields(answered, HEAD_BYTES + 20, member);
    const name = frame.toString('latin1', NAME_AT, frame.indexOf(0, NAME_AT));
    if (name === 'hello' || name.toLowerCase() === 'ismaster') return withFields(answered, BODY_AT, member);
    if (name === 'buildInfo') return withFields(answered, BODY_AT, MONGODB);
    if (!frame.includes('\u0008autocommit\0')) return answered;
    const own = interfere(deserialize(frame.subarray(BODY_AT, BODY_AT + frame.readInt32LE(BODY_AT))), name);
    return own ? reply(frame, own) : answered;
  }

  const server = createServer((socket) => {
    const upstream = connect({ host: inner.hostname, port: Number(inner.port) });
    for (const each of [socket, upstream]) {
      each.setNoDelay(true);
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
  return {
    uri: `mongodb://${address}/?replicaSet=${SET_NAME}`,
    met,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As MongoDB itself says it was built. */
const MONGODB = { modules: [], javascriptEngine: 'mozjs', allocator: 'tcmalloc' };

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
  let pieces: Buffer[] = [];
  let size = 0;
  socket.on('data', (chunk) => {
    pieces.push(chunk);
    size += chunk.length;
    let received = pieces[0]!;
    if (received.length < 4 || (size >= received.readInt32LE(0) && pieces.length > 1)) {
      received = Buffer.concat(pieces);
      pieces = [received];
    }
    while (received.length >= HEAD_BYTES && received.length >= received.readInt32LE(0)) {
      const end = received.readInt32LE(0);
      take(received.subarray(0, end));
      received = received.subarray(end);
      pieces = [received];
      size = received.length;
    }
  });
}
