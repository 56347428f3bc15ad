import type { Random } from '../random.js';
import { type CountedForm, CROWDED, HONEST, LONG_HEADS, TINY } from '../arrival-forms.js';
import { nextAddress, type Identity, sendAs, write } from './send.js';
import type { GrownShot } from './shots.js';
import type { Target } from './target.js';
import { shotOf, someUser } from './volleys.js';

const BODY = `{"t":"${'x'.repeat(1024 ** 2 - 8)}"}`;
/** What a megabyte may take of the main thread, whatever it arrives as. */
const MAX_MAIN_MS = 60;
const MAX_STALL_MS = 60;
/** Other work of the service, such as collecting garbage, only adds: the least of several measures counts. */
const MEASURES = 5;

/** What one request costs by the events that it arrives in. */
export interface Arrival {
  name: string;
  status: number;
  /** Chunks, packets or header lines that were sent before the service closed the connection. */
  events: number;
  /** Processor time of the main thread. */
  ms: number;
  /** The longest time that the event loop was kept. */
  stallMs: number;
}

/** What is beyond the bounds of every stranger; empty when nothing is. */
export function judgeArrival({ ms, stallMs }: Arrival): string[] {
  const problems: string[] = [];
  if (ms > MAX_MAIN_MS) problems.push(`a megabyte kept the main thread for ${ms.toFixed(0)} ms`);
  if (stallMs > MAX_STALL_MS) problems.push(`the event loop was kept for ${stallMs} ms of processor time`);
  return problems;
}

/**
 * A megabyte in each form of many events, to a route that reads it and to one that wants no body, with and without a
 * key; in ordinary forms to whom nobody knows; heads and trailers of many lines; and heads of one long header.
 */
export async function arriveInPieces(
  target: Target,
  random: Random,
  shots: readonly GrownShot[],
  note: (arrival: Arrival) => void,
): Promise<void> {
  const { url } = target.service.ready;
  const plain = shots.filter(({ size, isStream }) => size === 0 && isStream !== true);
  const wanted = plain.filter(({ hasBody, caller }) => hasBody === true && caller !== 'nobody');
  const unwanted = plain.filter(({ hasBody, method }) => hasBody !== true && method === 'GET');
  const unknown = plain.filter(({ hasBody, caller }) => hasBody === true && caller === 'nobody');
  const who = await someUser(target.roomy, 10);
  for (const form of TINY) {
    for (const shot of [wanted, unwanted, unknown].map((each) => random.pick(each))) {
      note(await measure(target, `${form.name} to ${shot.route}`, () => sendBody(url, shot, form, who)));
    }
  }
  for (const form of HONEST) {
    const shot = random.pick(unknown);
    note(await measure(target, `${form.name} to ${shot.route}`, () => sendBody(url, shot, form, who)));
  }
  const heads = Array.from({ length: 10 }, () => random.pick(LONG_HEADS));
  for (const [name, text] of [...CROWDED, ...heads]) {
    const lines = text.split('\r\n').length;
    note(await measure(target, name, async () => ({ events: lines, ...(await write(url, [text])) })));
  }
}

const sendBody = (url: string, shot: GrownShot, form: CountedForm, who: Identity) =>
  sendAs(url, { ...shotOf(shot), body: BODY }, nextAddress(), form, who);

async function measure(
  target: Target,
  name: string,
  act: () => Promise<{ status: number; events: number }>,
): Promise<Arrival> {
  const measured: Arrival[] = [];
  do {
    const stallsBefore = target.stalls().length;
    const before = target.spentMs().main;
    const sent = await act();
    const ms = target.spentMs().main - before;
    measured.push({ name, ...sent, ms, stallMs: Math.max(0, ...target.stalls().slice(stallsBefore)) });
  } while (measured.length < MEASURES && measured.every((each) => judgeArrival(each).length > 0));
  return measured.sort((a, b) => a.ms - b.ms)[0]!;
}
