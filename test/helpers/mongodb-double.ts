import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { deserialize, serialize, type Document } from 'bson';

export interface MongodbDouble {
  uri: string;
  /** Names of the commands that came, in order, without those of the driver's own monitoring. */
  asked: string[];
  close(): Promise<void>;
}

const HEAD_BYTES = 16;
const OP_REPLY = 1;
const OP_MSG = 2013;
const OWN_COMMANDS = new Set(['hello', 'ismaster', 'isMaster', 'endSessions']);

/**
 * A server of MongoDB's wire protocol that says of itself whatever it is told to, and 59 to all other commands. `uri`
 * leads to it directly.
 */
export async function startMongodbDouble(answers: Record<string, Document>): Promise<MongodbDouble> {
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    let received = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= HEAD_BYTES && received.length >= received.readInt32LE(0)) {
        const size = received.readInt32LE(0);
        socket.write(reply(received.subarray(0, size), answers, asked));
        received = received.subarray(size);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    uri: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/?directConnection=true`,
    asked,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function reply(message: Buffer, answers: Record<string, Document>, asked: string[]): Buffer {
  const legacy = message.readInt32LE(12) !== OP_MSG;
  // The old form names a collection before its document, the new one has flags and the kind of its section.
  const bodyAt = legacy ? message.indexOf(0, HEAD_BYTES + 4) + 9 : HEAD_BYTES + 5;
  const bodyEnd = bodyAt + message.readInt32LE(bodyAt);
  const name = Object.keys(deserialize(message.subarray(bodyAt, bodyEnd)))[0]!;
  if (!OWN_COMMANDS.has(name)) asked.push(name);
  const known = name.toLowerCase() === 'ismaster' ? answers.hello : answers[name];
  const body = serialize(known ? { ...known, ok: 1 } : { ok: 0, code: 59, errmsg: 'no such command' });
  const front = Buffer.alloc(HEAD_BYTES + (legacy ? 20 : 5));
  front.writeInt32LE(front.length + body.length, 0);
  front.writeInt32LE(message.readInt32LE(4), 8);
  front.writeInt32LE(legacy ? OP_REPLY : OP_MSG, 12);
  if (legacy) front.writeInt32LE(1, HEAD_BYTES + 16);
  return Buffer.concat([front, body]);
}
