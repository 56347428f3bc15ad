import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openApp, type App } from '../../../src/app.js';
import type { AppError } from '../../../src/errors.js';
import type { Project } from '../../../src/features/projects/project.js';
import { logIn } from '../../../src/features/users/sign-in/log-in.js';
import { setPassword } from '../../../src/features/users/accounts/password.js';
import { signUp } from '../../../src/features/users/sign-up.js';
import { openLogger } from '../../../src/platform/observe/logger.js';
import { buildProject } from '../../helpers/build-project.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

const PASSWORD = 'correct horse battery';
const CLIENT = { ip: '203.0.113.9', userAgent: '' };

let test: TestApp;
let others: App[];
let project: Project;
beforeEach(async () => {
  test = await openTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
  const log = openLogger({ level: 'silent', format: 'json' });
  others = [await openApp(test.app.config, log), await openApp(test.app.config, log)];
  ({ project } = await buildProject(test.app));
});
afterEach(async () => {
  for (const app of others) await app.close();
  await test.close();
});

/**
 * The applications as they are when `count` comparisons of passwords end at the same moment, whatever turns there are.
 */
function comparingTogether(apps: App[], count: number): App[] {
  let compared = 0;
  let release: () => void;
  const together = new Promise<void>((resolve) => (release = resolve));
  return apps.map((app) => ({
    ...app,
    passwords: {
      async inTurn(tenant, work) {
        const bcrypt = await app.passwords.inTurn(tenant, (real) => Promise.resolve(real));
        const matches = async (password: string, hash: string | null): Promise<boolean> => {
          const same = await bcrypt.matches(password, hash);
          if (++compared === count) release();
          await together;
          return same;
        };
        return work({ ...bcrypt, matches });
      },
    },
  }));
}

async function guess(app: App, email: string, password: string): Promise<string> {
  return logIn(app, project, { email, password }, CLIENT).then(
    () => 'admitted',
    (error: AppError) => error.code,
  );
}

const count = (outcomes: string[], code: string): number => outcomes.filter((outcome) => outcome === code).length;

describe('the lock of an account in several processes', () => {
  it('tells five wrong guesses of many at once, and no more', async () => {
    const email = 'many@example.test';
    await signUp(test.app, project, { email, password: PASSWORD }, 'user');
    const apps = comparingTogether([test.app, ...others], 24);
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, (_, at) => guess(apps[at % apps.length]!, email, `wrong ${at}`)),
    );
    expect([count(outcomes, 'INVALID_CREDENTIALS'), count(outcomes, 'ACCOUNT_LOCKED')]).toEqual([5, 19]);
  });

  it('admits nobody who was compared before it and answered after it', async () => {
    const email = 'late@example.test';
    await signUp(test.app, project, { email, password: PASSWORD }, 'user');
    for (let at = 0; at < 4; at++) await guess(test.app, email, 'wrong');
    let locked: Promise<unknown> = Promise.resolve();
    const late: App = {
      ...others[0]!,
      passwords: {
        inTurn: (tenant, work) =>
          others[0]!.passwords.inTurn(tenant, (bcrypt) =>
            work({
              ...bcrypt,
              async matches(password, hash) {
                const same = await bcrypt.matches(password, hash);
                locked = guess(others[1]!, email, 'wrong');
                await locked;
                return same;
              },
            }),
          ),
      },
    };
    expect(await guess(late, email, PASSWORD)).toBe('ACCOUNT_LOCKED');
    expect(await locked).toBe('INVALID_CREDENTIALS');
  });

  it('never keeps out many who sign in at once', async () => {
    const email = 'crowd@example.test';
    await signUp(test.app, project, { email, password: PASSWORD }, 'user');
    const outcomes = await Promise.all(Array.from({ length: 24 }, (_, at) => guess(others[at % 2]!, email, PASSWORD)));
    expect(count(outcomes, 'admitted')).toBe(24);
  });
});

describe('the lock of an account over addresses', () => {
  const from = (app: App, email: string, password: string, ip: string): Promise<string> =>
    logIn(app, project, { email, password }, { ip, userAgent: '' }).then(
      () => 'admitted',
      (error: AppError) => error.code,
    );
  const open = (email: string) => signUp(test.app, project, { email, password: PASSWORD }, 'user');

  it('takes a /64 of IPv6 for one, and IPv4 inside IPv6 for IPv4', async () => {
    await open('network@example.test');
    const outcomes: string[] = [];
    for (let at = 1; at <= 7; at++)
      outcomes.push(await from(test.app, 'network@example.test', 'wrong', `2001:db8:7:8::${at}`));
    expect([count(outcomes, 'INVALID_CREDENTIALS'), count(outcomes, 'ACCOUNT_LOCKED')]).toEqual([5, 2]);
    expect(await from(test.app, 'network@example.test', PASSWORD, '2001:db8:7:9::1')).toBe('admitted');
    const mixed: string[] = [];
    for (let at = 1; at <= 3; at++) {
      mixed.push(await from(test.app, 'network@example.test', 'wrong', '203.0.113.77'));
      mixed.push(await from(test.app, 'network@example.test', 'wrong', '::ffff:203.0.113.77'));
    }
    expect(count(mixed, 'INVALID_CREDENTIALS')).toBe(5);
  });

  it('tells a hundred wrong guesses a day from all networks, and keeps out neither who is signed in nor who resets the password', async () => {
    const email = 'everywhere@example.test';
    const home = '198.51.100.1';
    const user = await open(email);
    expect(await from(test.app, email, PASSWORD, home)).toBe('admitted');
    const outcomes = await Promise.all(
      Array.from({ length: 110 }, (_, at) => from(others[at % 2]!, email, 'wrong', `10.1.${Math.floor(at / 4)}.1`)),
    );
    expect([count(outcomes, 'INVALID_CREDENTIALS'), count(outcomes, 'ACCOUNT_LOCKED')]).toEqual([100, 10]);
    expect(await from(test.app, email, PASSWORD, '198.51.100.2')).toBe('ACCOUNT_LOCKED');
    expect(await from(test.app, 'nobody@example.test', 'wrong', '198.51.100.2')).toBe('INVALID_CREDENTIALS');
    expect(await from(test.app, email, PASSWORD, home)).toBe('admitted');
    for (let at = 0; at < 5; at++) expect(await from(test.app, email, 'wrong', home)).toBe('INVALID_CREDENTIALS');
    expect(await from(test.app, email, PASSWORD, home)).toBe('ACCOUNT_LOCKED');
    await setPassword(test.app, project, user, 'a new password');
    expect(await from(test.app, email, 'a new password', '198.51.100.2')).toBe('admitted');
  });

  it('tells the same of an address without an account', async () => {
    const email = 'no-account@example.test';
    const outcomes = await Promise.all(
      Array.from({ length: 104 }, (_, at) => from(others[at % 2]!, email, 'wrong', `10.2.${Math.floor(at / 4)}.1`)),
    );
    expect([count(outcomes, 'INVALID_CREDENTIALS'), count(outcomes, 'ACCOUNT_LOCKED')]).toEqual([100, 4]);
    expect(await from(test.app, email, 'wrong', '198.51.100.3')).toBe('ACCOUNT_LOCKED');
  });
});
