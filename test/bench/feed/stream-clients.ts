import { connect, type Socket } from 'node:net';

/*
 * Clients of streams in a process of their own, on bare sockets: thousands of them cost the machine little beside the
 * server that is measured. Told by messages what to do, answers each with one.
 */

/** What the process can be told. */
export type Command =
  | OpenCommand
  /** Answers when each stream, or all together, has heard of so many changes, with the times they took. */
  | { do: 'hear'; changes: number; of?: 'each' | 'all' }
  /** Opens those that have ended until all are open or the time is over. */
  | { do: 'reopen'; port: number; withinMs: number }
  | { do: 'close' };

/**
 * Opens `count` streams by this request, `atOnce` at a time; answers when each has been sent `ready`. In the request
 * `{since}` stands for the last cursor.
 */
export interface OpenCommand {
  do: 'open';
  host: string;
  port: number;
  request: string;
  ready: string;
  count: number;
  atOnce: number;
  /** What begins each change that is told, where it is not our own service. */
  change?: string;
  /**
   * For a service that takes subscriptions by a second request: it is sent when `ready` has come, and the stream is
   * ready when it is answered. `{client}` in the body stands for the id that the first event has told.
   */
  confirm?: { head: string; body: string };
}

export interface Answer {
  /** Milliseconds since the command was given. */
  ms: number;
  /** From the commit of a change, as its event tells it, to the client: milliseconds, of each delivery. */
  delays: number[];
  /** Replies that were not a stream, by their status. */
  refused: Record<string, number>;
  /** Changes that were heard of in all. */
  heard: number;
  /** Streams that are open and ready. */
  open: number;
}

interface Client {
  request: string;
  socket: Socket | null;
  isReady: boolean;
  isConfirming: boolean;
  heard: number;
  rest: string;
  /** Where it goes on when it is opened again. */
  cursor: string | null;
}

const AT = '"at":"';
const CHANGE = 'event: change';
const CURSOR = '"cursor":"';
const TRY_AGAIN_MS = 250;

const clients: Client[] = [];
let opened: OpenCommand;
let delays: number[] = [];
let refused: Record<string, number> = {};
let heard = 0;
let look: () => void = () => undefined;
let again = false;

function open(client: Client): void {
  const socket = connect({ host: opened.host, port: opened.port });
  client.socket = socket;
  client.isReady = false;
  client.isConfirming = false;
  client.rest = '';
  let isFirst = true;
  socket.setNoDelay(true);
  socket.on('connect', () => socket.write(client.request.replace('{since}', client.cursor ?? 'now')));
  socket.on('data', (bytes) => {
    const text = client.rest + bytes.latin1Slice();
    if (isFirst) {
      isFirst = false;
      const status = text.slice(9, 12);
      if (status !== '200') {
        refused[status] = (refused[status] ?? 0) + 1;
        socket.destroy();
        return;
      }
    }
    take(client, text);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    if (client.socket !== socket) return;
    client.socket = null;
    client.isReady = false;
    if (again) setTimeout(() => open(client), Math.random() * TRY_AGAIN_MS);
  });
}

function take(client: Client, text: string): void {
  let from = 0;
  const change = opened.change ?? CHANGE;
  for (let at = text.indexOf(change); at >= 0; at = text.indexOf(change, from)) {
    const end = text.indexOf('\n\n', at);
    if (end < 0) break;
    const moment = text.indexOf(AT, at);
    if (moment > 0 && moment < end) {
      delays.push(Date.now() - Date.parse(text.slice(moment + AT.length, text.indexOf('"', moment + AT.length))));
    }
    client.heard++;
    heard++;
    from = end;
  }
  const cursor = text.lastIndexOf(CURSOR);
  const cursorEnd = cursor < 0 ? -1 : text.indexOf('"', cursor + CURSOR.length);
  if (cursorEnd > 0) client.cursor = text.slice(cursor + CURSOR.length, cursorEnd);
  if (!client.isReady && text.includes(opened.ready)) {
    if (!opened.confirm) client.isReady = true;
    else if (!client.isConfirming) confirm(client, opened.confirm, text);
  }
  const last = text.lastIndexOf('\n\n');
  client.rest = last < 0 ? text : text.slice(Math.max(last, from));
  look();
}

function confirm(client: Client, { head, body }: NonNullable<OpenCommand['confirm']>, text: string): void {
  client.isConfirming = true;
  const own = body.replace('{client}', /"clientId":"(\w+)"/.exec(text)![1]!);
  const socket = connect({ host: opened.host, port: opened.port });
  socket.on('connect', () => socket.write(`${head}Content-Length: ${own.length}\r\n\r\n${own}`));
  socket.once('data', (bytes) => {
    const status = bytes.latin1Slice(9, 12);
    client.isReady = status.startsWith('2');
    if (!client.isReady) refused[status] = (refused[status] ?? 0) + 1;
    socket.destroy();
    look();
  });
  socket.on('error', () => undefined);
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
  switch (command.do) {
    case 'open': {
      opened = command;
      const wanted = clients.length + command.count;
      let ready = clients.length;
      for (let at = 0; at < command.count; at++) {
        clients.push({
          request: command.request,
          socket: null,
          isReady: false,
          isConfirming: false,
          heard: 0,
          rest: '',
          cursor: null,
        });
      }
      let next = ready;
      const isDone = (): boolean => {
        while (ready < next && clients[ready]!.isReady) ready++;
        while (next < wanted && next - ready < command.atOnce) open(clients[next++]!);
        return ready === wanted;
      };
      return until(isDone);
    }
    case 'hear': {
      const wanted = command.changes * (command.of === 'all' ? 1 : clients.length);
      await until(() => heard >= wanted);
      return;
    }
    case 'reopen': {
      opened = { ...opened, port: command.port };
      again = true;
      for (const client of clients) if (!client.socket) open(client);
      const limit = AbortSignal.timeout(command.withinMs);
      const stop = setInterval(() => look(), 100);
      await until(() => limit.aborted || clients.every(({ isReady }) => isReady));
      clearInterval(stop);
      return;
    }
    case 'close': {
      again = false;
      for (const { socket } of clients) socket?.destroy();
      clients.length = 0;
    }
  }
}

process.on('disconnect', () => process.exit());
process.on('message', (command: Command) => {
  const start = performance.now();
  void obey(command).then(() => {
    const open = clients.filter(({ isReady }) => isReady).length;
    const answer: Answer = { ms: performance.now() - start, delays, refused, heard, open };
    delays = [];
    refused = {};
    heard = 0;
    process.send!(answer);
  });
});
