import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Response } from 'supertest';
import { disableUser, enableUser, requireUser, setPassword } from '../../../world/users.js';
import { buildProject } from '../../../helpers/build-project.js';
import { createFakeClock } from '../../../helpers/fake-clock.js';
import { openSeed } from '../../../helpers/seed.js';
import { useTestApp } from '../../../helpers/use.js';
import { bearer, openUserClient, PASSWORD } from '../../../helpers/user-client.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const GRACE = 10 * SECOND;
const TOKEN_LIFE = 15 * MINUTE;
const SESSION_LIFE = 7 * DAY;
const PROOF_LIFE = 10 * MINUTE;
/** How many replaced tokens of a session are known; an older one is used twice even within the grace window. */
const KNOWN = 8;

const clock = createFakeClock();
let passwords = 0;
let mostRotations = 0;
let steppedUp = 0;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);
/** The service's clock, which does not go back with the machine's: it stands still by a timer that does. */
const now = (): number => test.app.clock.now();
vi.useFakeTimers({ toFake: ['performance'] });
afterAll(() => void vi.useRealTimers());

/** What a session should be: all its refresh tokens, when each was replaced, and the newest of its access tokens. */
interface Family {
  tokens: string[];
  replacedAt: number[];
  usedAt: number;
  access: { token: string; at: number };
  /** When the user last proved to be the user in it. */
  confirmedAt: number;
  /** Its access tokens end with it, whatever life they have left. */
  accessEnded: boolean;
  ended: 'reused' | 'signed out' | 'account' | null;
}

interface Account {
  email: string;
  password: string;
  disabled: boolean;
  families: Family[];
}

type Step = { what: keyof typeof STEPS; family: number; token: number };

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(
    ...(['logIn', 'refresh', 'refresh', 'refresh', 'refreshOld', 'refreshOld', 'refreshTogether'] as const),
    ...(['pass3Seconds', 'pass3Seconds', 'pass11Seconds', 'pass16Minutes', 'passDays', 'setBack'] as const),
    ...(['logOut', 'changePassword', 'setPassword', 'disable', 'enable', 'enable'] as const),
    ...(['stepUp', 'endOne', 'endOthers'] as const),
  ),
  family: fc.nat({ max: 7 }),
  token: fc.nat({ max: 11 }),
});

const bodyOf = (reply: Response): { code?: string; accessToken: string } =>
  reply.body as { code?: string; accessToken: string };
const refreshOf = (reply: Response): string => reply.headers['x-refresh-token'] as string;
const told = (reply: Response): string => (reply.status === 200 ? '200' : `${reply.status} ${bodyOf(reply).code}`);

function begin(account: Account, reply: Response): void {
  account.families.push({
    tokens: [refreshOf(reply)],
    replacedAt: [],
    usedAt: now(),
    access: { token: bodyOf(reply).accessToken, at: now() },
    confirmedAt: now(),
    accessEnded: false,
    ended: null,
  });
}

/** The answer to a refresh with a token of a session, and what becomes of the session by it. */
function expectRefresh(family: Family, at: number): string {
  const nowMs = now();
  if (nowMs - family.usedAt >= SESSION_LIFE) return '401 REFRESH_INVALID';
  if (family.ended) return family.ended === 'reused' ? '401 REFRESH_REUSED' : '401 REFRESH_INVALID';
  const last = family.tokens.length - 1;
  if (at === last) return '200';
  if (at >= last - KNOWN && Math.abs(nowMs - family.replacedAt[at]!) < GRACE) return '200';
  family.ended = 'reused';
  family.accessEnded = true;
  return '401 REFRESH_REUSED';
}

async function refresh(family: Family, at: number): Promise<void> {
  const expected = expectRefresh(family, at);
  const reply = await client.refresh(family.tokens[at]!);
  expect(told(reply)).toBe(expected);
  if (expected === '200') keep(family, at, reply);
}

function keep(family: Family, at: number, reply: Response): void {
  const nowMs = now();
  if (at === family.tokens.length - 1) {
    expect(family.tokens).not.toContain(refreshOf(reply));
    family.tokens.push(refreshOf(reply));
    family.replacedAt.push(nowMs);
    family.usedAt = nowMs;
    mostRotations = Math.max(mostRotations, family.replacedAt.length);
  } else {
    expect(refreshOf(reply)).toBe(family.tokens[at + 1]);
  }
  family.access = { token: bodyOf(reply).accessToken, at: nowMs };
}

const stored = (account: Account) => requireUser(test.app, project.project._id, account.email);

function endAll(account: Pick<Account, 'families'>, kept: Family | null = null): void {
  for (const family of account.families.filter((each) => each !== kept)) {
    family.ended ??= 'account';
    family.accessEnded = true;
  }
}

const STEPS = {
  async logIn(account: Account): Promise<void> {
    const reply = await client.logIn(account.email, account.password);
    expect(told(reply)).toBe(account.disabled ? '403 ACCOUNT_DISABLED' : '200');
    if (!account.disabled) begin(account, reply);
  },
  refresh: (_account: Account, family: Family) => refresh(family, family.tokens.length - 1),
  refreshOld: (_account: Account, family: Family, token: number) => refresh(family, token % family.tokens.length),
  async refreshTogether(_account: Account, family: Family): Promise<void> {
    const at = family.tokens.length - 1;
    const expected = expectRefresh(family, at);
    const replies = await Promise.all([0, 1, 2].map(() => client.refresh(family.tokens[at]!)));
    expect(replies.map(told)).toEqual([expected, expected, expected]);
    if (expected === '200') for (const reply of replies) keep(family, at, reply);
  },
  pass3Seconds: () => clock.advance(3 * SECOND),
  pass11Seconds: () => clock.advance(11 * SECOND),
  pass16Minutes: () => clock.advance(16 * MINUTE),
  setBack: () => clock.advance(-2 * SECOND),
  passDays: () => clock.advance(6.5 * DAY),
  async logOut(_account: Account, family: Family, token: number): Promise<void> {
    const presented = family.tokens[token % family.tokens.length]!;
    expect(told(await client.post('/logout', undefined, { 'x-refresh-token': presented }))).toBe('200');
    family.ended ??= 'signed out';
    family.accessEnded = true;
  },
  async changePassword(account: Account, family: Family): Promise<void> {
    const next = `${PASSWORD} ${++passwords}`;
    const input = { currentPassword: account.password, newPassword: next };
    const reply = await client.post('/change-password', input, bearer(family.access.token));
    expect(told(reply)).toBe(expectAccess(family));
    if (reply.status !== 200) return;
    account.password = next;
    endAll(account, family);
  },
  async stepUp(account: Account, family: Family): Promise<void> {
    const reply = await client.post('/step-up', { currentPassword: account.password }, bearer(family.access.token));
    expect(told(reply)).toBe(expectAccess(family));
    if (reply.status !== 200) return;
    family.access = { token: bodyOf(reply).accessToken, at: now() };
    family.confirmedAt = now();
    steppedUp++;
  },
  async endOne({ families }: Account, family: Family, token: number): Promise<void> {
    const target = families[token % families.length]!;
    const access = expectAccess(family);
    const isLive = target.ended === null && now() - target.usedAt < SESSION_LIFE;
    const id = target.tokens[0]!.split('.')[0]!;
    const reply = await client.send('delete', `/sessions/${id}`, undefined, bearer(family.access.token));
    expect(told(reply)).toBe(access === '200' && !isLive ? '404 SESSION_NOT_FOUND' : access);
    if (reply.status === 200) endAll({ families: [target] });
  },
  async endOthers(account: Account, family: Family): Promise<void> {
    const access = expectAccess(family);
    const isProven = family.ended === null && now() - family.confirmedAt < PROOF_LIFE;
    const reply = await client.send('delete', '/sessions/others', undefined, bearer(family.access.token));
    expect(told(reply)).toBe(access === '200' && !isProven ? '403 STEP_UP_REQUIRED' : access);
    if (reply.status === 200) endAll(account, family);
  },
  async setPassword(account: Account): Promise<void> {
    account.password = `${PASSWORD} of the operator`;
    await setPassword(test.app, project.project, await stored(account), account.password);
    endAll(account);
  },
  async disable(account: Account): Promise<void> {
    await disableUser(test.app, project.project, await stored(account));
    account.disabled = true;
    endAll(account);
  },
  async enable(account: Account): Promise<void> {
    await enableUser(test.app, project.project, await stored(account));
    account.disabled = false;
  },
} satisfies Record<string, (account: Account, family: Family, token: number) => unknown>;

function expectAccess({ access, accessEnded }: Family): string {
  if (now() - access.at >= TOKEN_LIFE) return '401 TOKEN_EXPIRED';
  return accessEnded ? '401 TOKEN_INVALID' : '200';
}

describe('any sequence of what happens to the sessions of an account', () => {
  it('leaves each session as good as it should be, and no other', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 30 }),
        fc.nat({ max: KNOWN }),
        async (steps, replaced) => {
          const reply = await client.signUp();
          const { email } = (reply.body as { user: { email: string } }).user;
          const account: Account = { email, password: PASSWORD, disabled: false, families: [] };
          begin(account, reply);
          // Near the bound: an honest session is replaced more often than any number of random steps does.
          for (let count = 0; count < replaced; count++) {
            clock.advance(11 * SECOND);
            await STEPS.refresh(account, account.families[0]!);
          }
          for (const { what, family, token } of steps) {
            await STEPS[what](account, account.families[family % account.families.length]!, token);
          }
          for (const family of account.families) {
            expect(told(await client.me(family.access.token))).toBe(expectAccess(family));
            await refresh(family, family.tokens.length - 1);
          }
        },
      ),
      { numRuns: 150, seed: openSeed('sessions') },
    );
    // What the runs have reached: sessions with more replaced tokens than are known.
    expect(mostRotations).toBeGreaterThan(KNOWN);
    expect(steppedUp).toBeGreaterThan(10);
  });
});
