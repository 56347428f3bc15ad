import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openApp, type App } from '../../../src/app.js';
import type { AppError } from '../../../src/errors.js';
import type { Project } from '../../../src/features/projects/project.js';
import { logIn } from '../../../src/features/users/log-in.js';
import { signUp } from '../../../src/features/users/sign-up.js';
import { openLogger } from '../../../src/platform/logger.js';
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

/** The applications as they are when `count` comparisons of passwords end at the same moment, whatever turns there are. */
function comparingTogether(apps: App[], count: number): App[] {
  let compared = 0;
  let release: () => void;
  const together = new Promise<void>((resolve) => (release = resolve));
  return apps.map((app) => ({
    ...app,
    passwords: {
      async inTurn(party, work) {
        const bcrypt = await app.passwords.inTurn(party, (real) => Promise.resolve(real));
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
        inTurn: (party, work) =>
          others[0]!.passwords.inTurn(party, (bcrypt) =>
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

  it('forgets the failures with a success', async () => {
    const email = 'forgets@example.test';
    await signUp(test.app, project, { email, password: PASSWORD }, 'user');
    for (let round = 0; round < 3; round++) {
      for (let at = 0; at < 4; at++) expect(await guess(others[at % 2]!, email, 'wrong')).toBe('INVALID_CREDENTIALS');
      expect(await guess(test.app, email, PASSWORD)).toBe('admitted');
    }
  });

  it('never keeps out many who sign in at once', async () => {
    const email = 'crowd@example.test';
    await signUp(test.app, project, { email, password: PASSWORD }, 'user');
    const outcomes = await Promise.all(Array.from({ length: 24 }, (_, at) => guess(others[at % 2]!, email, PASSWORD)));
    expect(count(outcomes, 'admitted')).toBe(24);
  });
});
