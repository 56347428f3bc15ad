import { setTimeout as wait } from 'node:timers/promises';
import { watch, type Damage } from './damage.js';
import { nextAddress, send, sendUpTo, type Identity, type Shot, type Stage } from './send.js';
import type { GrownShot } from './shots.js';
import type { AttackedProject, Target } from './target.js';

/** A user who sends few enough requests to be refused none; then another one. */
const lately = new WeakMap<AttackedProject, { identity: Identity; uses: number }>();
const MOST_OF_USER = 80;
/** For jobs that a request leaves behind. */
const AFTER_MS = 500;

export async function someUser(project: AttackedProject, uses = 1): Promise<Identity> {
  const known = lately.get(project);
  if (known && known.uses + uses <= MOST_OF_USER) {
    known.uses += uses;
    return known.identity;
  }
  // A full project takes no new user; one of before goes on.
  const identity = await project.join().catch((error: unknown) => {
    if (known) return known.identity;
    throw error;
  });
  lately.set(project, { identity, uses });
  return identity;
}

export const shotOf = (grown: GrownShot): Shot => ({ ...grown, body: grown.body() });

/** Sends each of the requests so many times, all at once; every other one about another collection. */
export function fire(
  target: Target,
  shots: readonly GrownShot[],
  { times, from }: { times: number; from: number },
): Promise<Damage> {
  const { url } = target.service.ready;
  const name = `${times} x ${shots.map(({ family, size }) => `${family} ${size}`).join(' + ')} from ${from}`;
  return watch(target, name, from, async (sources) => {
    const who = await target.roomy.join();
    const answers = shots.map(shotOf).flatMap((shot) =>
      Array.from({ length: times }, (_, at) => {
        const path = at % 2 === 0 ? shot.path : shot.path.replace('/data/posts', '/data/notes');
        return send(url, { ...shot, path }, sources[at % from]!, who);
      }),
    );
    return (await Promise.all(answers)).map(({ status }) => status);
  });
}

/** Keeps connections that stop at a stage, or send one byte after the other, while it looks what others get. */
export function hold(
  target: Target,
  shot: GrownShot,
  { times, from, stage, heldMs }: { times: number; from: number; stage: Stage; heldMs: number },
): Promise<Damage> {
  const { url } = target.service.ready;
  return watch(target, `${times} ${stage} of ${shot.family} ${shot.size} from ${from}`, from, async (sources) => {
    const sent = shotOf(shot);
    const who = await target.roomy.join();
    const sockets = Array.from({ length: times }, (_, at) => sendUpTo(url, sent, sources[at % from]!, stage, who));
    await wait(heldMs);
    for (const socket of sockets) socket.destroy();
    return [];
  });
}

/** Sends a request again and again from one address and user, and leaves time for what comes of it. */
export function repeat(target: Target, project: AttackedProject, shot: GrownShot, times: number): Promise<Damage> {
  const { url } = target.service.ready;
  return watch(target, `${times} in turn of ${shot.family} ${shot.size}`, 1, async ([source]) => {
    const who = await someUser(project, times);
    const statuses: number[] = [];
    for (let at = 0; at < times; at++) statuses.push((await send(url, shotOf(shot), source!, who)).status);
    await wait(AFTER_MS);
    return statuses;
  });
}

/** Stores, under another Idempotency-Key each time, and removes at once for good what can be removed. */
export function keepStoring(target: Target, shot: GrownShot, times: number): Promise<Damage> {
  const { url } = target.service.ready;
  const keyed = { ...shotOf(shot), headers: { ...shot.headers, 'idempotency-key': 'key{n}' } };
  return watch(target, `${times} kept of ${shot.family} ${shot.size}`, 1, async ([source]) => {
    const who = await someUser(target.small, times);
    const statuses: number[] = [];
    for (let at = 0; at < times; at++) {
      const { status, text } = await send(url, keyed, source!, who);
      statuses.push(status);
      const id = shot.path.startsWith('/api/data/') ? /"_id":"([0-9a-f]{24})"/.exec(text)?.[1] : undefined;
      if (id === undefined || status !== 201) continue;
      const removal = { method: 'DELETE', path: `${shot.path}/${id}?permanent=true`, headers: shot.headers, body: '' };
      await send(url, removal, nextAddress(), who);
    }
    return statuses;
  });
}
