import type { Resend } from 'resend';
import { withTimeout } from '../time/with-timeout.js';
import type { MailProvider, OutgoingMail, SendOutcome } from './mail-provider.js';

const CALL_LIMIT_MS = 15_000;
const RETRYABLE = new Set([408, 409, 425, 429]);

/** Identifiers go into the provider's paths as they are, so only harmless ones may. */
const PROVIDER_ID = /^[A-Za-z0-9_-]{1,64}$/;

export function isProviderId(text: string): boolean {
  return PROVIDER_ID.test(text);
}

export interface ResendReply<T> {
  data: T | null;
  error: { message: string; statusCode: number | null; name: string } | null;
  headers?: Record<string, string> | null;
}

/** The provider's client for one key; loaded on first use. `baseUrl` null = the provider's own address. */
export async function openResendClient(apiKey: string, baseUrl: string | null): Promise<Resend> {
  const { Resend } = await import('resend');
  return new Resend(apiKey, baseUrl === null ? undefined : { baseUrl });
}

/**
 * Runs one call of the client with a time limit that the client itself does not have; it never throws, silence reads as
 * `statusCode: null`.
 */
export async function callResend<T>(
  call: (signal: AbortSignal) => Promise<ResendReply<T>>,
  limitMs = CALL_LIMIT_MS,
): Promise<ResendReply<T>> {
  const silence: ResendReply<T> = {
    data: null,
    error: { message: 'The mail provider did not answer', statusCode: null, name: 'no_answer' },
  };
  try {
    return await withTimeout(call(AbortSignal.timeout(limitMs)), limitMs, silence);
  } catch {
    return silence;
  }
}

/** The consequence of a failed call for a message (a lost answer may hide an accepted one). */
function readResendFailure(reply: ResendReply<unknown>): Exclude<SendOutcome, { outcome: 'accepted' }> {
  const { message, statusCode, name } = reply.error ?? { message: 'empty answer', statusCode: null, name: 'empty' };
  const reason = `${name}: ${message}`.slice(0, 500);
  if (statusCode === null || statusCode >= 500) return { outcome: 'unknown', reason };
  if (RETRYABLE.has(statusCode) && !name.endsWith('quota_exceeded')) {
    const seconds = Number(reply.headers?.['retry-after']);
    return { outcome: 'later', reason, retryAfterMs: Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : null };
  }
  return { outcome: 'refused', reason };
}

export interface ResendOptions {
  apiKey: string;
  baseUrl: string | null;
}

interface BatchReply {
  /** Of the messages that were taken, in their order. */
  data: { id: string }[];
  /** Of those that were not, by their place in the batch. */
  errors?: { index: number; message: string }[];
}

function readBatch({ data, errors = [] }: BatchReply, count: number): SendOutcome[] {
  const refused = new Map(errors.map(({ index, message }) => [index, `validation_error: ${message}`.slice(0, 500)]));
  const taken = data.values();
  return Array.from({ length: count }, (_, index): SendOutcome => {
    const reason = refused.get(index);
    if (reason !== undefined) return { outcome: 'refused', reason };
    const next = taken.next();
    return next.done
      ? { outcome: 'unknown', reason: 'The mail provider did not tell what became of it' }
      : { outcome: 'accepted', id: next.value.id };
  });
}

function asPayload({ from, to, subject, html, text, replyTo }: OutgoingMail): Parameters<Resend['emails']['send']>[0] {
  return {
    from,
    to,
    subject,
    ...(html !== undefined && { html }),
    ...(text !== undefined && { text }),
    ...(replyTo && { replyTo }),
  } as Parameters<Resend['emails']['send']>[0];
}

export function openResend(options: ResendOptions): MailProvider {
  let opening: Promise<Resend> | null = null;
  const client = (): Promise<Resend> => (opening ??= openResendClient(options.apiKey, options.baseUrl));
  return {
    name: 'resend',
    async send(mail, idempotencyKey) {
      const resend = await client();
      const reply = await callResend((signal) => resend.emails.send(asPayload(mail), { idempotencyKey, signal }));
      return reply.data ? { outcome: 'accepted', id: reply.data.id } : readResendFailure(reply);
    },
    async sendBatch(mails, idempotencyKey, limitMs) {
      const resend = await client();
      const reply = await callResend<BatchReply>(
        (signal) => resend.batch.send(mails.map(asPayload), { idempotencyKey, batchValidation: 'permissive', signal }),
        limitMs,
      );
      return reply.data ? readBatch(reply.data, mails.length) : mails.map(() => readResendFailure(reply));
    },
    async findStatus(id) {
      if (!isProviderId(id)) return null;
      const resend = await client();
      const reply = await callResend<{ last_event?: string }>((signal) => resend.emails.get(id, { signal }));
      return reply.data ? { lastEvent: reply.data.last_event ?? 'unknown', raw: reply.data } : null;
    },
  };
}
