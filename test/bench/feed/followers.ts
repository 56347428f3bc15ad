import { cpuSeconds } from '../process-cost.js';
import { changesRequest, startClients, type Clients } from './clients.js';
import { rest } from './idle-streams.js';
import { withFeedService } from './service.js';

/** Followers share so many filters: a write concerns one group of them. */
const ROOMS = 100;
const WRITERS = 16;

export interface FollowerFigures {
  writesPerSecond: number;
  /** From commit to client, milliseconds. */
  p50: number;
  p99: number;
  deliveries: number;
  /** Of the service, for the writes and all that they cause. */
  processorShare: number;
}

/** How late followers hear, each of one room, while others write at a steady pace. */
export function measureFollowers(
  followers: number,
  perSecond: number,
  seconds: number,
  { rooms = ROOMS, query = '' } = {},
): Promise<FollowerFigures> {
  return withFeedService(followers, async ({ secret, start }) => {
    const service = await start();
    const pid = service.process.pid!;
    const clients = startClients();
    try {
      for (let room = 0; room < rooms; room++) {
        await open(clients, service.ready.url, changesRequest(secret, `room=r${room}${query}`), followers / rooms);
      }
      const writes = perSecond * seconds;
      const before = used(pid);
      const begun = performance.now();
      const heard = clients.ask({ do: 'hear', changes: (writes * followers) / rooms, of: 'all' });
      let next = 0;
      const writer = async (): Promise<void> => {
        for (let at = next++; at < writes; at = next++) {
          const wait = begun + (at / perSecond) * 1000 - performance.now();
          if (wait > 1) await rest(wait);
          const response = await fetch(`${service.ready.url}/api/data/items`, {
            method: 'POST',
            headers: { 'x-api-key': secret, 'content-type': 'application/json' },
            body: JSON.stringify({ room: `r${at % rooms}`, text: 'a message of some words', at }),
          });
          if (response.status !== 201) throw new Error(`a write was answered ${response.status}`);
          await response.arrayBuffer();
        }
      };
      await Promise.all(Array.from({ length: WRITERS }, writer));
      const took = (performance.now() - begun) / 1000;
      const { delays } = await heard;
      const share = (used(pid) - before) / took;
      delays.sort((a, b) => a - b);
      const at = (part: number): number => delays[Math.floor(delays.length * part)]!;
      return {
        writesPerSecond: writes / took,
        p50: at(0.5),
        p99: at(0.99),
        deliveries: delays.length,
        processorShare: share,
      };
    } finally {
      await clients.stop();
    }
  });
}

export interface RestartFigures {
  /** Until all are caught up again, from the moment at which the service listens. */
  seconds: number;
  open: number;
  /** Processor time of the service for each that came back. */
  microsEach: number;
  /** Errors by their status. */
  refused: Record<string, number>;
}

/** How long it takes until all streams are back after the service was killed and started again. */
export function measureRestart(streams: number): Promise<RestartFigures> {
  return withFeedService(streams, async ({ secret, start }) => {
    const first = await start();
    const clients = startClients();
    try {
      await open(clients, first.ready.url, changesRequest(secret, 'state=open'), streams);
      await first.stop('SIGKILL');
      const again = await start();
      const before = used(again.process.pid!);
      const {
        ms,
        open: back,
        refused,
      } = await clients.ask({
        do: 'reopen',
        port: Number(new URL(again.ready.url).port),
        withinMs: 120_000,
      });
      const microsEach = ((used(again.process.pid!) - before) * 1e6) / back;
      return { seconds: ms / 1000, open: back, microsEach, refused };
    } finally {
      await clients.stop();
    }
  });
}

async function open(clients: Clients, url: string, request: string, count: number): Promise<void> {
  const { hostname: host, port } = new URL(url);
  await clients.ask({
    do: 'open',
    host,
    port: Number(port),
    request,
    ready: 'event: ready',
    count,
    atOnce: 50,
  });
}

function used(pid: number): number {
  const { user, system } = cpuSeconds(pid);
  return user + system;
}
