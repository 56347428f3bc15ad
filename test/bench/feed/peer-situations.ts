import { rest } from './idle-streams.js';
import { withOwnPeer } from './own-peer.js';
import type { Peer } from './peer.js';
import { withPocketBase } from './pocketbase.js';

/** What each service does in a situation, in words. */
export interface Situation {
  what: string;
  own: string;
  peer: string;
}

/** So long it is waited for what may never come. */
const SETTLE_MS = 2_000;
const OWNER = 0;
const OTHER = 1;

/** What clients are told when they have been away, when a document leaves their filter, and when one is removed. */
export function comparePeers(program: string, awayMs: number): Promise<Situation[]> {
  return withOwnPeer(10, 2, (own) =>
    withPocketBase(program, 2, async (peer) => {
      const [ours, theirs] = await Promise.all([own, peer].map((service) => observe(service, awayMs)));
      return [...ours!].map(([what, text]) => ({ what, own: text, peer: theirs!.get(what)! }));
    }),
  );
}

async function observe(service: Peer, awayMs: number): Promise<Map<string, string>> {
  return new Map([
    [`a client that was away for ${awayMs / 1000} s`, await beAway(service, awayMs)],
    ['a document that leaves the filter', await leaveFilter(service)],
    ['a document that is removed under a rule', await removeUnderRule(service)],
  ]);
}

async function beAway(service: Peer, awayMs: number): Promise<string> {
  const [changed, removed] = [await service.create(OWNER, 'open'), await service.create(OWNER, 'open')];
  const first = await service.listen(OWNER, { onlyOpen: true });
  const since = await first.close();
  const made = await service.create(OWNER, 'open');
  await service.update(changed, 'closed');
  await service.remove(removed);
  await rest(awayMs);
  const again = await service.listen(OWNER, { onlyOpen: true, ...(since !== undefined && { since }) });
  await rest(SETTLE_MS);
  const told = [made, changed, removed].filter((id) => again.text().includes(id));
  await again.close();
  return `is told of ${told.length} of 3 changes`;
}

async function leaveFilter(service: Peer): Promise<string> {
  const id = await service.create(OWNER, 'open');
  const listener = await service.listen(OWNER, { onlyOpen: true });
  await service.update(id, 'closed');
  await rest(SETTLE_MS);
  const isTold = listener.text().includes(id);
  await listener.close();
  return isTold ? 'its follower is told' : 'its follower is not told and goes on showing it';
}

async function removeUnderRule(service: Peer): Promise<string> {
  const id = await service.create(OWNER, 'open');
  const [owner, other] = await Promise.all([OWNER, OTHER].map((user) => service.listen(user, { onlyOpen: false })));
  await service.remove(id);
  await rest(SETTLE_MS);
  const isTold = [owner!, other!].map((listener) => listener.text().includes(id));
  await Promise.all([owner!.close(), other!.close()]);
  return `its owner is ${isTold[0] ? '' : 'not '}told, another user is ${isTold[1] ? 'told too' : 'not told'}`;
}
