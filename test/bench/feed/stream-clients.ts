import { connect, type Socket } from 'node:net';

/*
 * Clients of streams in a process of their own, on bare sockets: thousands of them cost the machine little beside the
 * server that is measured. Told by messages what to do, answers each with one.
 */

/** What the process can be told. */
export type Command =
  | OpenCommand
  /** Answers when each stream, or all together, has heard of so many changes, with the times they took. */
  | { do: 'hear'; changes: number; of?: 'each' | 'all' };

/** Opens `count` streams by this request, `atOnce` at a time; answers when each has been told that it is ready. */
interface OpenCommand {
  do: 'open';
  host: string;
  port: number;
  request: string;
  count: number;
  atOnce: number;
}

export interface Answer {
  /** Milliseconds since the command was given. */
  ms: number;
  /** From the commit of a change, as its event tells it, to the client: milliseconds, of each delivery. */
  delays: number[];
}

interface Client {
  isReady: boolean;
  rest: string;
}

const AT = '"at":"';
const READY = 'event: ready';
const CHANGE = 'event: change';

const clients: Client[] = [];
let delays: number[] = [];
let heard = 0;
let look: () => void = () => undefined;

function open(client: Client, { host, port, request }: OpenCommand): void {
  const socket: Socket = connect({ host, port });
  let isFirst = true;
  socket.setNoDelay(true);
  socket.on('connect', () => socket.write(request));
  socket.on('data', (bytes) => {
    const text = client.rest + bytes.latin1Slice();
    if (isFirst && text.slice(9, 12) !== '200') throw new Error(`a stream was answered ${text}`);
    isFirst = false;
    take(client, text);
  });
}

function take(client: Client, text: string): void {
  let from = 0;
  for (let at = text.indexOf(CHANGE); at >= 0; at = text.indexOf(CHANGE, from)) {
    const end = text.indexOf('\n\n', at);
    if (end < 0) break;
    const moment = text.indexOf(AT, at);
    if (moment > 0 && moment < end) {
      delays.push(Date.now() - Date.parse(text.slice(moment + AT.length, text.indexOf('"', moment + AT.length))));
    }
    heard++;
    from = end;
  }
  client.isReady ||= text.includes(READY);
  const last = text.lastIndexOf('\n\n');
  client.rest = last < 0 ? text : text.slice(Math.max(last, from));
  look();
}

/** Resolves when `isDone` holds, which is looked at after each event. */
function until(isDone: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    look = () => {
      if (!isDone()) return;
      look = () => undefined;
      resolve();
    };
    look();
  });
}

async function obey(command: Command): Promise<void> {
  if (command.do === 'hear') {
    const wanted = command.changes * (command.of === 'all' ? 1 : clients.length);
    return until(() => heard >= wanted);
  }
  let ready = clients.length;
  let next = ready;
  clients.push(...Array.from({ length: command.count }, () => ({ isReady: false, rest: '' })));
  return until(() => {
    while (ready < next && clients[ready]!.isReady) ready++;
    while (next < clients.length && next - ready < command.atOnce) open(clients[next++]!, command);
    return ready === clients.length;
  });
}

process.on('disconnect', () => process.exit());
process.on('message', (command: Command) => {
  const start = performance.now();
  void obey(command).then(() => {
    process.send!({ ms: performance.now() - start, delays } satisfies Answer);
    delays = [];
    heard = 0;
  });
});
