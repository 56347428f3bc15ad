import { once } from 'node:events';
import { connect } from 'node:net';
import type { Config } from '../../src/config/config.js';
import { AppError } from '../../src/errors.js';
import { verifyMailKey } from '../../src/features/mail/project-mail.js';
import { orTimeout } from '../../src/platform/time/with-timeout.js';
import { failed, passed, unreachable, type CheckResult } from './check.js';

const PATIENCE_MS = 3000;

/** Checks that the Redis of REDIS_URL answers. */
export async function checkCache({ mongodbUri, redisUrl }: Config): Promise<CheckResult> {
  if (!redisUrl) {
    const alone = mongodbUri ? '; several machines count rate limits each for itself' : '';
    return passed('cache', `in each process’s memory (REDIS_URL is not set)${alone}`);
  }
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
  });
  // The connection is given up with words of its own; why it failed is said before.
  let cause: Error | null = null;
  redis.on('error', (error: Error) => (cause ??= error));
  try {
    await redis.connect();
    await redis.ping();
    return passed('cache', 'Redis answers');
  } catch (error) {
    return unreachable(
      'cache',
      `Redis does not answer (${oneLine(cause ?? error)})`,
      'Check REDIS_URL and that it runs.',
    );
  } finally {
    redis.disconnect();
  }
}

/**
 * Checks that mail can leave: a live call with the provider's key or a greeting of the mail server; nothing is sent.
 */
export async function checkMail(config: Config): Promise<CheckResult> {
  const sender = config.mailFrom ? `default sender ${config.mailFrom}` : 'no default sender (BSVC_MAIL_FROM)';
  const kind = config.mailProvider ?? (config.resendApiKey ? 'resend' : config.smtpUrl ? 'smtp' : 'outbox');
  if (kind === 'outbox') {
    return passed('mail', 'kept in the outbox, not sent (no RESEND_API_KEY, no BSVC_SMTP_URL)');
  }
  try {
    if (kind === 'resend') await inTime(verifyMailKey({ config }, config.resendApiKey ?? ''));
    else await greetSmtp(config.smtpUrl ?? '');
    return passed('mail', `${kind} accepts the credentials, ${sender}`);
  } catch (error) {
    const why = error instanceof AppError ? error.message.split(':')[0]! : oneLine(error);
    const setting = kind === 'resend' ? 'RESEND_API_KEY' : 'BSVC_SMTP_URL';
    return failed('mail', `${kind}: ${why}`, `Check ${setting}; "bsvc mail test" sends a message.`);
  }
}

async function greetSmtp(url: string): Promise<void> {
  const { createTransport } = await import('nodemailer');
  const timeouts = { connectionTimeout: PATIENCE_MS, greetingTimeout: PATIENCE_MS, socketTimeout: PATIENCE_MS };
  const transport = createTransport({ url, ...timeouts });
  try {
    await inTime(transport.verify());
  } finally {
    transport.close();
  }
}

/** Checks that a server answers at BSVC_ENGINE_LISTEN; no check when it is not set. */
export async function checkListener({ engineListen, mongodbUri }: Config): Promise<CheckResult[]> {
  if (!engineListen) return [];
  if (mongodbUri) return [passed('wire protocol', 'BSVC_ENGINE_LISTEN has no effect with MONGODB_URI')];
  const path = /^unix:(\/.+\.sock)$/.exec(engineListen)?.[1];
  const port = /:(\d{1,5})$/.exec(engineListen)?.[1];
  if (!path && !port) {
    const hint = 'Write 127.0.0.1:27027 or unix:/path/name.sock.';
    return [failed('wire protocol', `BSVC_ENGINE_LISTEN is "${engineListen}", which is not an address`, hint)];
  }
  const socket = path ? connect(path) : connect(Math.min(Number(port), 65_535), '127.0.0.1');
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(PATIENCE_MS) });
    return [passed('wire protocol', `open at ${engineListen}`)];
  } catch {
    return [passed('wire protocol', `closed; "bsvc serve" opens it at ${engineListen}`)];
  } finally {
    socket.destroy();
  }
}

async function inTime(work: Promise<unknown>): Promise<void> {
  await orTimeout(work, PATIENCE_MS, () => new Error(`no answer within ${PATIENCE_MS / 1000} s`));
}

function oneLine(error: unknown): string {
  return (error as Error).message.split('\n')[0]!;
}
