import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';

const env = { BSVC_PROJECT: 'shop', BSVC_MAIL_FROM: 'shop@example.test' };
let home: ReturnType<typeof openCliHome>;

beforeEach(async () => {
  home = openCliHome();
  await home.bsvc(['project', 'create', 'shop']);
});
afterEach(() => home.remove());

const mailTest = (...argv: string[]) => home.bsvc(['mail', 'test', ...argv], { env });
const logs = async (): Promise<unknown> => (await home.bsvc(['mail', 'logs', '--json'], { env })).json();

describe('bsvc mail test without a mail server', () => {
  it('queues a mail to the address for the outbox', async () => {
    expect(await mailTest('--to', 'me@example.test')).toMatchObject({
      code: 0,
      stdout: 'Queued for me@example.test (see it with "bsvc mail outbox").\n',
    });
    expect(await logs()).toMatchObject([{ to: 'me@example.test', subject: 'Test mail of shop', status: 'queued' }]);
  });

  it('refuses what is no address, and queues nothing', async () => {
    for (const to of ['nobody', 'me@example.test, you@example.test', `${'x'.repeat(100)}@`]) {
      expect(await mailTest('--to', to)).toMatchObject({
        code: 1,
        stderr: `bsvc: "${to.slice(0, 80)}" is not an e-mail address.\n`,
      });
    }
    expect(await logs()).toEqual([]);
  });
});
