import bcrypt from 'bcrypt';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { AppError } from '../../src/errors.js';
import { openPasswords, type PasswordLimits } from '../../src/platform/secrets/password.js';
import { eventually } from '../helpers/eventually.js';

const LIMITS: PasswordLimits = { concurrency: 1, maxWaiting: 4, maxWaitingPerTenant: 3 };

/** Work that ends when told to. */
function buildWork() {
  const order: string[] = [];
  const gates: (() => void)[] = [];
  return {
    order,
    work: (name: string) => () => {
      order.push(name);
      return new Promise<string>((resolve) => gates.push(() => resolve(name)));
    },
    async finishNext() {
      await eventually('work has begun', () => gates.length > 0);
      gates.shift()!();
    },
  };
}

describe('passwords', () => {
  afterEach(() => vi.restoreAllMocks());

  it('lets tenants take turns, however many one of them has waiting', async () => {
    const passwords = openPasswords(4, LIMITS);
    const { order, work, finishNext } = buildWork();
    const done = ['a1', 'a2', 'a3', 'a4', 'b1'].map((name) => passwords.inTurn(name[0]!, work(name)));
    for (let count = 0; count < 5; count++) await finishNext();
    expect(await Promise.all(done)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1']);
    expect(order).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
  });

  it('refuses with 503 and Retry-After when one tenant or all together wait too much', async () => {
    const passwords = openPasswords(4, LIMITS);
    const { work, finishNext } = buildWork();
    const done = ['a1', 'a2', 'a3', 'a4'].map((name) => passwords.inTurn('a', work(name)));
    const refusal = await passwords.inTurn('a', work('a5')).catch((error: AppError) => error);
    expect(refusal).toMatchObject({ kind: 'unavailable', code: 'BUSY' });
    expect((refusal as AppError).retryAfterSeconds).toBeGreaterThanOrEqual(1);
    done.push(passwords.inTurn('b', work('b1')));
    await expect(passwords.inTurn('c', work('c1'))).rejects.toMatchObject({ code: 'BUSY' });
    for (let count = 0; count < 5; count++) await finishNext();
    await Promise.all(done);
    const later = passwords.inTurn('c', work('c2'));
    await finishNext();
    expect(await later).toBe('c2');
  });

  it('goes on after work that fails', async () => {
    const passwords = openPasswords(4, LIMITS);
    await expect(passwords.inTurn('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await passwords.inTurn('a', () => Promise.resolve('yes'))).toBe('yes');
  });

  it('never runs more at once than it may', async () => {
    const passwords = openPasswords(4, { concurrency: 2, maxWaiting: 100, maxWaitingPerTenant: 100 });
    let running = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    await Promise.all(Array.from({ length: 50 }, (_, index) => passwords.inTurn(`p${index % 3}`, work)));
    expect(most).toBe(2);
    expect(running).toBe(0);
  });

  it('does one comparison of the configured cost for an account that does not exist', async () => {
    const compare = vi.spyOn(bcrypt, 'compare');
    const passwords = openPasswords(5, LIMITS);
    expect(await passwords.inTurn('a', (work) => work.matches('whatever', null))).toBe(false);
    expect(compare).toHaveBeenCalledTimes(1);
    const hash = compare.mock.calls[0]![1];
    expect(hash).toMatch(/^\$2b\$05\$[./A-Za-z0-9]{53}$/);
  });

  it('makes bcrypt hashes of the configured cost and tells others', async () => {
    const passwords = openPasswords(5, LIMITS);
    await passwords.inTurn('a', async (work) => {
      const hash = await work.hash('correct horse');
      expect(hash).toMatch(/^\$2b\$05\$/);
      expect(await work.matches('correct horse', hash)).toBe(true);
      expect(await work.matches('correct horsf', hash)).toBe(false);
      expect(work.isOutdated(hash)).toBe(false);
      expect(work.isOutdated(await bcrypt.hash('correct horse', 4))).toBe(true);
    });
  });

  it('tells passwords apart that differ after a NUL character only', async () => {
    const passwords = openPasswords(4, LIMITS);
    await passwords.inTurn('a', async (work) => {
      const hash = await work.hash('before\0after');
      expect(await work.matches('before\0other', hash)).toBe(false);
      expect(await work.matches('before', hash)).toBe(false);
    });
  });

  it('works as long for a wrong password as for none, also when the password has a hash of a lower cost', async () => {
    const compare = vi.spyOn(bcrypt, 'compare');
    const workOf = async (hash: string | null): Promise<number> => {
      compare.mockClear();
      const passwords = openPasswords(7, LIMITS);
      expect(await passwords.inTurn('a', (bcrypt) => bcrypt.matches('wrong', hash))).toBe(false);
      return compare.mock.calls.reduce((sum, [, used]) => sum + 2 ** Number(used.split('$')[2]), 0);
    };
    expect(await workOf(null)).toBe(2 ** 7);
    for (const cost of [4, 5, 7]) expect(await workOf(await bcrypt.hash('right', cost))).toBe(2 ** 7);
  });
});
