import { Webhook } from 'standardwebhooks';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { findProject } from '../projects/project-store.js';
import { keepEvent, advanceLog, type MailStatus } from './mail-log.js';
import { findProjectWebhookSecret } from './project-mail.js';

const STATUS_OF_EVENT: Readonly<Record<string, MailStatus>> = {
  'email.sent': 'sent',
  'email.delivered': 'delivered',
  'email.bounced': 'bounced',
  'email.complained': 'complained',
};

const MAX_ID_CHARACTERS = 200;

export interface SignedEvent {
  /** Reads the body, which the signature covers as it came; called when the headers are worth it. */
  read: () => Promise<Buffer>;
  headers: { id: string; timestamp: string; signature: string };
  /** Name or id of the project whose own account sent it; null = the service's account. */
  project: string | null;
}

/**
 * Takes an event of the mail provider (rest-api.md 6.1). Answers the message of the reply; 400 for a bad or stale
 * signature. Without a secret nothing is processed. The same event twice changes nothing, and a log only moves forward.
 */
export async function receiveMailEvent(app: App, event: SignedEvent): Promise<string> {
  const project = event.project === null ? null : await findProject(app, event.project);
  const secret =
    event.project === null ? app.config.providerWebhookSecret : project && findProjectWebhookSecret(app, project);
  if (!secret) return 'Webhook ignored: the webhook secret is not configured';
  requireSignature(event);
  const payload = verify(event, await event.read(), secret);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    throw invalid('INVALID_BODY', 'The event must be a JSON object');
  }
  const status =
    typeof payload.type === 'string' && Object.hasOwn(STATUS_OF_EVENT, payload.type)
      ? STATUS_OF_EVENT[payload.type]
      : undefined;
  const emailId = payload.data?.email_id;
  if (!status || !isId(emailId) || !isId(event.headers.id)) return 'Webhook ignored: not an event that is handled';
  const eventId = `${project?._id.toHexString() ?? 'service'}:${event.headers.id}`;
  const reason = status === 'bounced' ? readReason(payload.data?.bounce) : null;
  // Kept before it takes effect: if the mail's id is not known here yet, the worker that notes it looks for events
  // afterwards.
  const isNew = await keepEvent(app, {
    _id: eventId,
    projectId: project?._id ?? null,
    providerEmailId: emailId,
    status,
    reason,
    seenAt: new Date(app.clock.now()),
  });
  // Also of one that was kept before: its process may have died right after that.
  const filter = { providerEmailId: emailId, ...(project && { projectId: project._id }) };
  await advanceLog(app, filter, status, { ...(reason !== null && { reason }) });
  return isNew ? 'Webhook processed' : 'Webhook already processed';
}

/** Ids are kept and searched for: a project could sign any text as one. */
function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS;
}

interface EventPayload {
  type?: unknown;
  data?: { email_id?: unknown; bounce?: unknown };
}

/** The age that the library allows. */
const MAX_AGE_S = 300;

/** Headers that no body could make good are refused before it is read. */
function requireSignature({ headers: { id, timestamp, signature } }: SignedEvent): void {
  const isFresh = Math.abs(Date.now() / 1000 - Number(timestamp)) <= MAX_AGE_S + 1;
  if (id === '' || signature === '' || timestamp === '' || !isFresh) throw invalidSignature();
}

function verify({ headers }: SignedEvent, body: Buffer, secret: string): EventPayload | null {
  const { id, timestamp, signature } = headers;
  try {
    // The library checks the signature before it parses, allows several and refuses what is older or newer than five
    // minutes.
    return new Webhook(secret).verify(body, {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    }) as EventPayload | null;
  } catch (error) {
    throw invalidSignature(error);
  }
}

function invalidSignature(cause?: unknown): Error {
  return invalid('INVALID_SIGNATURE', 'The webhook signature is missing, wrong or too old', { cause });
}

function readReason(bounce: unknown): string {
  const message = (bounce as { message?: unknown } | null | undefined)?.message;
  return typeof message === 'string' ? message.slice(0, 500) : 'bounced';
}
