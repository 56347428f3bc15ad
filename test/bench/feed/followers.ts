import { changesRequest, startClients } from './clients.js';
import { rest } from './idle-streams.js';
import { withFeedService } from './service.js';

const FOLLOWERS = 1_000;
const PER_SECOND = 100;
const WRITES = 1_000;
const WRITERS = 16;

/** Milliseconds from commit to client in the median: followers, each of a window of its own, while others write. */
export function measureDelay(): Promise<number> {
  return withFeedService(FOLLOWERS, async ({ secret, start }) => {
    const { url } = (await start()).ready;
    const { hostname: host, port } = new URL(url);
    const clients = startClients();
    try {
      for (let room = 0; room < FOLLOWERS; room++) {
        const request = changesRequest(secret, `room=r${room}&sort=-createdAt&limit=20`);
        await clients.ask({ do: 'open', host, port: Number(port), request, count: 1, atOnce: 1 });
      }
      const begun = performance.now();
      const heard = clients.ask({ do: 'hear', changes: WRITES, of: 'all' });
      let next = 0;
      const writer = async (): Promise<void> => {
        for (let at = next++; at < WRITES; at = next++) {
          const wait = begun + (at / PER_SECOND) * 1000 - performance.now();
          if (wait > 1) await rest(wait);
          const response = await fetch(`${url}/api/data/items`, {
            method: 'POST',
            headers: { 'x-api-key': secret, 'content-type': 'application/json' },
            body: JSON.stringify({ room: `r${at % FOLLOWERS}`, text: 'a message of some words', at }),
          });
          if (response.status !== 201) throw new Error(`a write was answered ${response.status}`);
          await response.arrayBuffer();
        }
      };
      await Promise.all(Array.from({ length: WRITERS }, writer));
      const { delays } = await heard;
      return delays.sort((a, b) => a - b)[Math.floor(delays.length / 2)]!;
    } finally {
      await clients.stop();
    }
  });
}
