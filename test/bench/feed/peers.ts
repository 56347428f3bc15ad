import { cpuSeconds } from '../process-cost.js';
import { startClients, type Clients } from './clients.js';
import { withOwnPeer } from './own-peer.js';
import type { Peer } from './peer.js';
import { withPocketBase } from './pocketbase.js';

const ROUNDS = 5;
const WRITES = 8;

/** Microseconds of processor time of the service for a delivery, the writes that cause them included. */
export interface PeerFigures {
  own: number;
  peer: number;
}

/**
 * What a delivery costs, with so many subscribers who are equally many streams of each user: a write of a user's item
 * concerns theirs alone. Both services run side by side and are measured by turns.
 */
export function measurePeers(program: string, subscribers: number, users: number): Promise<PeerFigures> {
  return withOwnPeer(subscribers, users, (own) =>
    withPocketBase(program, users, async (peer) => {
      const measured = [own, peer].map((service) => ({ service, clients: startClients(), cost: 0 }));
      try {
        for (const { service, clients } of measured) await subscribe(service, clients, subscribers, users);
        // The first round warms up.
        for (let round = -1; round < ROUNDS; round++) {
          for (const one of round % 2 === 0 ? measured : measured.toReversed()) {
            const cost = await measureRound(one.service, one.clients, users);
            if (round >= 0) one.cost += cost;
          }
        }
        const deliveries = ROUNDS * WRITES * (subscribers / users);
        return { own: measured[0]!.cost / deliveries, peer: measured[1]!.cost / deliveries };
      } finally {
        for (const { clients } of measured) await clients.stop();
      }
    }),
  );
}

async function subscribe(service: Peer, clients: Clients, subscribers: number, users: number): Promise<void> {
  const { hostname: host, port } = new URL(service.url);
  for (let user = 0; user < users; user++) {
    const count = subscribers / users;
    const { refused } = await clients.ask({
      do: 'open',
      host,
      port: Number(port),
      count,
      atOnce: 20,
      ...service.opens(user),
    });
    if (Object.keys(refused).length > 0) throw new Error(`streams were refused: ${JSON.stringify(refused)}`);
  }
}

/** Microseconds of processor time of some writes with all that they cause. */
async function measureRound(service: Peer, clients: Clients, users: number): Promise<number> {
  const before = used(service.pid);
  for (let at = 0; at < WRITES; at++) {
    const heard = clients.ask({ do: 'hear', changes: 1 / users });
    await service.create(at % users, 'open');
    await heard;
  }
  return (used(service.pid) - before) * 1e6;
}

function used(pid: number): number {
  const { user, system } = cpuSeconds(pid);
  return user + system;
}
