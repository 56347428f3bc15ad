import { cpuSeconds, memoryMib } from '../process-cost.js';
import { changesRequest, startClients } from './clients.js';
import { withFeedService } from './service.js';

export interface StreamFigures {
  /** Of the whole process that holds them, and of that before the first. */
  idleMib: number;
  baseMib: number;
  /** From the request that writes to the last client. */
  toAllMs: number;
  processorMicrosPerDelivery: number;
}

const FANOUTS = 9;

/** Documents of a followed window. */
const WINDOW = 20;

/**
 * What streams cost that follow the same: at rest, and when one change is told to all of them. Of a full window a new
 * document pushes out another, which is told too.
 */
export function measureStreams(streams: number, of: 'all' | 'window' = 'all'): Promise<StreamFigures> {
  const [query, changes] = of === 'all' ? ['state=open', 1] : [`state=open&sort=-createdAt&limit=${WINDOW}`, 2];
  return withFeedService(streams, async ({ secret, start }) => {
    const service = await start();
    const pid = service.process.pid!;
    const { url } = service.ready;
    const clients = startClients();
    const used = (): number => Object.values(cpuSeconds(pid)).reduce((sum, seconds) => sum + seconds, 0);
    const headers = { 'x-api-key': secret, 'content-type': 'application/json' };
    const write = (at: number): Promise<Response> =>
      fetch(`${url}/api/data/items`, { method: 'POST', headers, body: JSON.stringify({ state: 'open', at }) });
    try {
      // Code that every process loads sooner or later is no cost of a stream.
      for (let at = 0; at < WINDOW; at++) await (await write(at)).json();
      const baseMib = memoryMib(pid, 'RssAnon');
      const { hostname, port } = new URL(url);
      await clients.ask({
        do: 'open',
        host: hostname,
        port: Number(port),
        request: changesRequest(secret, query),
        count: streams,
        atOnce: 50,
      });
      await rest(3_000);
      const idleMib = memoryMib(pid, 'RssAnon');
      const times: number[] = [];
      const began = used();
      for (let at = 0; at < FANOUTS; at++) {
        const heard = clients.ask({ do: 'hear', changes });
        const written = write(at);
        times.push((await heard).ms);
        await (await written).json();
      }
      const processorMicrosPerDelivery = ((used() - began) * 1e6) / FANOUTS / streams;
      return {
        baseMib,
        idleMib,
        toAllMs: times.sort((a, b) => a - b)[Math.floor(FANOUTS / 2)]!,
        processorMicrosPerDelivery,
      };
    } finally {
      await clients.stop();
    }
  });
}

export function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
