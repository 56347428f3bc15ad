import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { openCliHome } from '../helpers/run-cli.js';

type Home = ReturnType<typeof openCliHome>;

let home: Home;
let mailServer: SMTPServer | null;
let service: RunningService | null;
beforeEach(() => {
  [home, mailServer, service] = [openCliHome(), null, null];
});
afterEach(async () => {
  await service?.stop();
  await new Promise<void>((resolve) => (mailServer ? mailServer.close(resolve) : resolve()));
  home.remove();
});

/** A mail server with these answers, and a service that sends by it. */
async function start(options: SMTPServerOptions): Promise<Record<string, string>> {
  mailServer = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData: (stream, _session, done) => void stream.resume().on('end', () => done()),
    ...options,
  });
  const listening = mailServer.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const env = {
    BSVC_SMTP_URL: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    BSVC_MAIL_FROM: 'shop@example.test',
    BSVC_PROJECT: 'shop',
  };
  await home.bsvc(['project', 'create', 'shop'], { env });
  service = await startService(['serve', '--port', '0'], {
    ...env,
    BSVC_DATA_DIR: join(home.dir, 'data'),
    BSVC_LOG_LEVEL: 'error',
  });
  return env;
}

const refuse = (code: number, text: string): Error => Object.assign(new Error(text), { responseCode: code });

describe('bsvc mail test', () => {
  it('says that the mail server took the mail', async () => {
    const env = await start({});
    const { code, stdout } = await home.bsvc(['mail', 'test', '--to', 'me@example.test'], { env });
    expect([code, stdout]).toEqual([0, 'Sent: the mail server took it for me@example.test (see "bsvc mail logs").\n']);
  });

  it('gives the words of a mail server that refuses, in the log too', async () => {
    const env = await start({ onRcptTo: (_address, _session, done) => done(refuse(550, 'no such user')) });
    const { code, stderr } = await home.bsvc(['mail', 'test', '--to', 'me@example.test'], { env });
    expect(code).not.toBe(0);
    expect(stderr).toContain('550 no such user');
    const logs = await home.bsvc(['mail', 'logs', '--json'], { env });
    expect(JSON.parse(logs.stdout)).toMatchObject([
      { status: 'failed', reason: expect.stringContaining('550') as string },
    ]);
  });

  it('says why a mail is tried again', async () => {
    const env = await start({ onMailFrom: (_address, _session, done) => done(refuse(451, 'greylisted')) });
    const { code, stderr } = await home.bsvc(['mail', 'test', '--to', 'me@example.test'], { env });
    expect(code).not.toBe(0);
    expect(stderr).toContain('451 greylisted; it is tried again');
    const logs = await home.bsvc(['mail', 'logs', '--json'], { env });
    expect(JSON.parse(logs.stdout)).toMatchObject([
      { status: 'queued', reason: expect.stringContaining('451') as string },
    ]);
  });

  it('only queues with --no-wait', async () => {
    const env = await start({});
    const { code, stdout } = await home.bsvc(['mail', 'test', '--to', 'me@example.test', '--no-wait', '--json'], {
      env,
    });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { status: 'queued', reason: null }]);
  });
});
