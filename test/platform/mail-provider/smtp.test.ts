import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, describe, expect, it } from 'vitest';
import { openSmtp } from '../../../src/platform/mail-provider/smtp.js';

const MAIL = {
  from: 'Shop <shop@example.test>',
  to: ['ann@example.test', 'bo@example.test'],
  subject: 'Grüße',
  text: 'Hello',
  replyTo: ['help@example.test'],
};

const servers: SMTPServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise<void>((resolve) => server.close(resolve));
});

/** A mail server on a free port that takes everything unless told otherwise; the address to give to the provider. */
async function listen(options: SMTPServerOptions = {}, user = ''): Promise<string> {
  const server = new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'], logger: false, ...options });
  // A connection cut on purpose is an error here too.
  server.on('error', () => undefined);
  servers.push(server);
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return `smtp://${user}127.0.0.1:${(listening.address() as AddressInfo).port}`;
}

const refuse = (responseCode: number): Error => Object.assign(new Error('no'), { responseCode });

describe('mail by SMTP', () => {
  it('reaches every recipient, signed in, with the idempotency key as its Message-ID', async () => {
    const taken: { to: string[]; text: string; user: unknown }[] = [];
    const url = await listen(
      {
        onAuth: ({ username, password }, _session, done) =>
          password === 'secret' ? done(null, { user: username }) : done(refuse(535)),
        onData(stream, { envelope, user }, done) {
          const parts: Buffer[] = [];
          stream.on('data', (part: Buffer) => parts.push(part));
          stream.on('end', () => {
            const to = envelope.rcptTo.map(({ address }) => address);
            taken.push({ to, text: Buffer.concat(parts).toString(), user });
            done();
          });
        },
        allowInsecureAuth: true,
      },
      'shop:secret@',
    );
    expect(await openSmtp(url).send(MAIL, 'log-1')).toEqual({ outcome: 'accepted', id: 'log-1' });
    expect(taken).toMatchObject([{ to: MAIL.to, user: 'shop' }]);
    expect(taken[0]!.text).toMatch(/^Message-ID: <log-1@example\.test>\r$/m);
    expect(taken[0]!.text).toMatch(/^Reply-To: help@example\.test\r$/m);
  });

  it('is refused for good by a 5xx, be it for the recipient or the content', async () => {
    const noSuchUser = await listen({ onRcptTo: (_address, _session, done) => done(refuse(550)) });
    expect(await openSmtp(noSuchUser).send(MAIL, 'a')).toMatchObject({ outcome: 'refused' });
    const noSpam = await listen({
      onData: (stream, _session, done) => void stream.resume().on('end', () => done(refuse(554))),
    });
    expect(await openSmtp(noSpam).send(MAIL, 'b')).toMatchObject({ outcome: 'refused' });
  });

  it('names the recipients that are refused while others are taken', async () => {
    const url = await listen({
      onRcptTo: ({ address }, _session, done) =>
        address.startsWith('bo@') ? done(Object.assign(new Error('no such user'), { responseCode: 550 })) : done(),
      onData: (stream, _session, done) => void stream.resume().on('end', () => done()),
    });
    expect(await openSmtp(url).send(MAIL, 'log-1')).toEqual({
      outcome: 'accepted',
      id: 'log-1',
      partial: 'refused for bo@example.test (550 no such user)',
    });
  });

  it('is worth another try after a 4xx, and when nobody is there', async () => {
    const busy = await listen({ onMailFrom: (_address, _session, done) => done(refuse(451)) });
    expect(await openSmtp(busy).send(MAIL, 'a')).toMatchObject({ outcome: 'later' });
    const greylisted = await listen({ onRcptTo: (_address, _session, done) => done(refuse(450)) });
    expect(await openSmtp(greylisted).send(MAIL, 'b')).toMatchObject({ outcome: 'later' });
    expect(await openSmtp('smtp://127.0.0.1:1').send(MAIL, 'c')).toMatchObject({ outcome: 'later' });
  });

  it('says that it does not know when the connection ends after the message was sent', async () => {
    const sockets = new Set<Socket>();
    const url = await listen({
      onData(stream) {
        stream.resume().on('end', () => sockets.forEach((socket) => socket.destroy()));
      },
    });
    servers[0]!.server.on('connection', (socket: Socket) => sockets.add(socket));
    expect(await openSmtp(url).send(MAIL, 'a')).toMatchObject({ outcome: 'unknown' });
  });
});
