import { threadMicros } from './process-cost.js';

/*
 * Whether a stranger can tell by the time of an answer if an address has an account (accounts.md 4): of each route that
 * takes one, known and unknown addresses by turns, each with the same history. Sign-up is not among them, as it says
 * itself that an address is taken (rest-api.md 4.1), nor are links and passkeys, which take none.
 */

const GOAL = 0.05;
/** Calls that are not counted, as a part of those that are. */
const WARM_PART = 0.3;

/** Answers the status. */
type Ask = (method: 'POST' | 'PATCH', path: string, body: object, token?: string) => Promise<number>;

/** Each with the status of its answer, alike for all. */
const ROUTES: readonly (readonly [path: string, status: number, body: (email: string) => object])[] = [
  ['login', 401, (email) => ({ email, password: 'not the password' })],
  ['login/code', 200, (email) => ({ email })],
  ['login/code/verify', 400, (email) => ({ email, otp: 'wrong' })],
  ['request-password-reset', 200, (email) => ({ email })],
  ['reset-password', 400, (email) => ({ email, otp: 'wrong', newPassword: 'a brand new one' })],
  ['resend-verification-otp', 200, (email) => ({ email })],
  ['verify-email', 400, (email) => ({ email, otp: 'wrong' })],
];

interface Sample {
  micros: number;
  spent: number;
}

/** Prints the medians of each route, of so many calls. */
export async function compareAddresses(
  calls: number,
  ask: Ask,
  pid: number,
  addAccount: (email: string) => Promise<unknown>,
  openGuest: () => Promise<string>,
): Promise<void> {
  const warmCalls = Math.ceil(calls * WARM_PART);
  const addresses = Array.from({ length: calls + warmCalls }, (_, n) => ({
    known: `known${n}@example.test`,
    unknown: `nobody${n}@example.test`,
  }));
  for (const { known } of addresses) await addAccount(known);
  const guests: Record<string, string> = {};
  for (const pair of addresses) for (const email of Object.values(pair)) guests[email] = await openGuest();
  console.log(`\nanswers for addresses with and without an account, medians of ${calls} calls each, by turns`);
  const routes = ROUTES.map(([path, status, body]) => ({
    path,
    status,
    send: (email: string) => ask('POST', path, body(email)),
  }));
  const asGuest = (email: string) => ask('PATCH', 'update-profile', { email }, guests[email]);
  for (const { path, status, send } of [...routes, { path: 'update-profile of a guest', status: 200, send: asGuest }]) {
    const samples: Record<'known' | 'unknown', Sample[]> = { known: [], unknown: [] };
    for (const [n, pair] of addresses.entries()) {
      // Whoever is first in a pair pays for what the pair before has left.
      const kinds = n % 2 === 0 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const);
      for (const kind of kinds) {
        const spent = threadMicros(pid);
        const begun = performance.now();
        const told = await send(pair[kind]);
        const micros = (performance.now() - begun) * 1000;
        if (told !== status) throw new Error(`${path} of ${pair[kind]}: ${told}`);
        if (n >= warmCalls) samples[kind].push({ micros, spent: threadMicros(pid) - spent });
      }
    }
    console.log(`${path.padEnd(28)}${compare(samples, 'micros', 'µs')}   ${compare(samples, 'spent', 'µs processor')}`);
  }
}

function compare(samples: Record<'known' | 'unknown', Sample[]>, of: keyof Sample, unit: string): string {
  const [known, unknown] = [samples.known, samples.unknown].map((each) => median(each.map((sample) => sample[of])));
  const ratio = known! / unknown!;
  const isMet = Math.abs(ratio - 1) <= GOAL ? 'met' : 'missed';
  return `${known!.toFixed(0)} → ${unknown!.toFixed(0)} ${unit} ${ratio.toFixed(3)}x ${isMet}`;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
