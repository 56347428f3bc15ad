import type { App } from '../../app.js';
import { AppError, invalid, missing, overLimit, unavailable } from '../../errors.js';
import { callResend, isProviderId, openResendClient, type ResendReply } from '../../platform/mail-provider/resend.js';
import { findDate } from '../collections/fields/field-type.js';
import type { Project } from '../projects/project.js';
import { FLAG, openObject, orNull, text, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import { requireByokKey, isSender, resolveSender } from './project-mail.js';
import { ADDRESS, checkRendered, SUBJECT } from './read-mail.js';
import { rejectLongWait, waitForTurn } from './sending/provider-pace.js';
import { ObjectId } from 'bson';
import { refundMailQuota, reserveMailQuota, commitMailQuota } from './sending/mail-quota.js';

const NAME = text({ minLength: 1, maxLength: 200, notBlank: true, oneLine: true });
export const NEW_AUDIENCE = openObject({ name: NAME });

const PERSON_NAME = orNull(text({ maxLength: 200, oneLine: true }));
const CONTACT_FIELDS = { 'firstName?': PERSON_NAME, 'lastName?': PERSON_NAME, 'unsubscribed?': FLAG };
export const NEW_CONTACT = openObject({ email: ADDRESS, ...CONTACT_FIELDS }, 'NewContact');
export const CONTACT_CHANGES = openObject({ 'email?': ADDRESS, ...CONTACT_FIELDS }, 'ContactChanges');
type ContactChanges = TypeOf<typeof CONTACT_CHANGES>;

type Client = Awaited<ReturnType<typeof openResendClient>>;

/**
 * Runs one call on the project's own provider account; 403 BYOK_REQUIRED without a key, the provider's refusals as our
 * own errors.
 */
async function onOwnAccount<T>(
  app: App,
  project: Project,
  call: (client: Client, signal: AbortSignal) => Promise<ResendReply<T>>,
): Promise<T> {
  const client = await openResendClient(requireByokKey(app, project), app.config.resendBaseUrl);
  await rejectLongWait(app, project);
  await waitForTurn(app, project);
  const reply = await callResend((signal) => call(client, signal));
  if (reply.data !== null) return reply.data;
  throw providerError(reply);
}

/** The provider's refusal in our words; its own text is passed on where it says what the caller has to change. */
function providerError(reply: ResendReply<unknown>): AppError {
  const { statusCode, message } = reply.error ?? { statusCode: null, message: '' };
  if (statusCode === 404) return missing('NOT_FOUND', 'The email provider does not know this id');
  if (statusCode === 401 || statusCode === 403) {
    return new AppError('forbidden', 'MAIL_KEY_REFUSED', 'The email provider rejects the project’s key');
  }
  if (statusCode === 429) {
    return overLimit('RATE_LIMITED', 'The mail provider’s rate limit is exceeded', { retryAfterSeconds: 1 });
  }
  if (statusCode !== null && statusCode < 500) {
    return invalid('INVALID_MAIL', `The mail provider says: ${message.slice(0, 300)}`);
  }
  return unavailable('MAIL_PROVIDER_UNAVAILABLE', 'The mail provider cannot be reached', { retryAfterSeconds: 5 });
}

/** 404 for what cannot be a provider's id: such a text must never become part of its paths. */
function requireProviderId(text: string): string {
  if (!isProviderId(text)) throw missing('NOT_FOUND', 'The email provider does not know this id');
  return text;
}

export function listAudiences(app: App, project: Project): Promise<unknown> {
  return onOwnAccount(app, project, (client, signal) => client.segments.list(undefined, { signal }));
}

export function createAudience(app: App, project: Project, { name }: TypeOf<typeof NEW_AUDIENCE>): Promise<unknown> {
  return onOwnAccount(app, project, (client, signal) => client.segments.create({ name }, { signal }));
}

export function deleteAudience(app: App, project: Project, audienceId: string): Promise<unknown> {
  const id = requireProviderId(audienceId);
  return onOwnAccount(app, project, (client, signal) => client.segments.remove(id, { signal }));
}

export function listContacts(app: App, project: Project, audienceId: string): Promise<unknown> {
  const id = requireProviderId(audienceId);
  return onOwnAccount(app, project, (client, signal) => client.contacts.list({ segmentId: id }, { signal }));
}

export function createContact(
  app: App,
  project: Project,
  audienceId: string,
  body: TypeOf<typeof NEW_CONTACT>,
): Promise<unknown> {
  const id = requireProviderId(audienceId);
  const { email } = body;
  return onOwnAccount(app, project, (client, signal) =>
    client.contacts.create({ audienceId: id, email, ...contactFields(body) }, { signal }),
  );
}

export function updateContact(
  app: App,
  project: Project,
  audienceId: string,
  contactId: string,
  body: ContactChanges,
): Promise<unknown> {
  const [audience, contact] = [requireProviderId(audienceId), requireProviderId(contactId)];
  const fields = contactFields(body);
  if (body.email === undefined && Object.keys(fields).length === 0) {
    throw invalid('INVALID_BODY', 'There is nothing to change');
  }
  return onOwnAccount(app, project, (client, signal) =>
    client.contacts.update({ audienceId: audience, id: contact, ...fields }, { signal }),
  );
}

export function deleteContact(app: App, project: Project, audienceId: string, contactId: string): Promise<unknown> {
  const [audience, contact] = [requireProviderId(audienceId), requireProviderId(contactId)];
  return onOwnAccount(app, project, (client, signal) =>
    client.contacts.remove({ audienceId: audience, id: contact }, { signal }),
  );
}

/** The fields of a contact that the provider takes besides its address: others are not passed on. */
function contactFields({ firstName, lastName, unsubscribed }: ContactChanges) {
  return {
    ...(typeof firstName === 'string' && { firstName }),
    ...(typeof lastName === 'string' && { lastName }),
    ...(unsubscribed !== undefined && { unsubscribed }),
  };
}

const SCHEDULED_AT = orNull({
  ...TEXT,
  description: 'Send time, ISO 8601.',
  examples: ['2027-01-01T09:00:00Z'],
});
export const NEW_BROADCAST = {
  ...openObject(
    {
      'audienceId?': orNull(TEXT),
      'segmentId?': orNull(TEXT),
      'from?': { ...TEXT, description: 'An address, or `Name <address>`. Default: the project’s sender.' },
      subject: SUBJECT,
      'html?': orNull(TEXT),
      'text?': orNull(TEXT),
      'scheduledAt?': SCHEDULED_AT,
    },
    'NewBroadcast',
  ),
  description: 'Needs `audienceId` (or `segmentId`, the same) and html or text.',
};
export const BROADCAST_SENDING = openObject({ 'scheduledAt?': SCHEDULED_AT });
type NewBroadcast = TypeOf<typeof NEW_BROADCAST>;

/** A broadcast request, checked (decisions.md 7). */
interface BroadcastRequest {
  segmentId: string;
  from: string;
  subject: string;
  html?: string;
  text?: string;
  scheduledAt?: string;
}

/**
 * Makes a draft, or with `scheduledAt` a broadcast that leaves then and takes its slot now. 400, 403 BYOK_REQUIRED,
 * 429.
 */
export async function createBroadcast(app: App, project: Project, body: NewBroadcast): Promise<unknown> {
  requireByokKey(app, project);
  const { scheduledAt, ...draft } = readBroadcast(app, project, body);
  const create = (scheduling: object): Promise<unknown> =>
    onOwnAccount(app, project, (client, signal) =>
      client.broadcasts.create({ ...draft, ...scheduling } as Parameters<typeof client.broadcasts.create>[0], {
        signal,
      }),
    );
  if (scheduledAt === undefined) return create({});
  return withMailQuota(app, project, () => create({ send: true, scheduledAt }));
}

/** Sends a draft, now or at `scheduledAt`; one slot of the monthly quota. */
export function sendBroadcast(
  app: App,
  project: Project,
  broadcastId: string,
  body: TypeOf<typeof BROADCAST_SENDING>,
): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  requireByokKey(app, project);
  const scheduledAt = readSchedule(body.scheduledAt);
  return withMailQuota(app, project, () =>
    onOwnAccount(app, project, (client, signal) =>
      client.broadcasts.send(id, scheduledAt === undefined ? undefined : { scheduledAt }, { signal }),
    ),
  );
}

export function listBroadcasts(app: App, project: Project): Promise<unknown> {
  return onOwnAccount(app, project, (client, signal) => client.broadcasts.list(undefined, { signal }));
}

export function getBroadcast(app: App, project: Project, broadcastId: string): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  return onOwnAccount(app, project, (client, signal) => client.broadcasts.get(id, { signal }));
}

export function deleteBroadcast(app: App, project: Project, broadcastId: string): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  return onOwnAccount(app, project, (client, signal) => client.broadcasts.remove(id, { signal }));
}

/**
 * A slot around one call: given back when the provider refuses, kept when it is unknown whether the mail was sent, as
 * after a crash.
 */
async function withMailQuota<T>(app: App, project: Project, call: () => Promise<T>): Promise<T> {
  const slot = new ObjectId();
  await reserveMailQuota(app, project, [slot], 'calls');
  try {
    return await call();
  } catch (error) {
    if (error instanceof AppError && error.kind !== 'unavailable') {
      await refundMailQuota(app, project._id, slot, 'calls');
    }
    throw error;
  } finally {
    await commitMailQuota(app, project._id, [slot], 'calls');
  }
}

function readBroadcast(app: App, project: Project, body: NewBroadcast): BroadcastRequest {
  const audience = body.segmentId ?? body.audienceId;
  if (!audience) throw invalid('INVALID_MAIL', 'audienceId is required');
  if (body.from !== undefined && !isSender(body.from)) {
    throw invalid('INVALID_MAIL', 'from must be an address, or Name <address>');
  }
  const { subject } = body;
  const bodies = { ...(body.html != null && { html: body.html }), ...(body.text != null && { text: body.text }) };
  checkRendered({ subject, ...bodies });
  const scheduledAt = readSchedule(body.scheduledAt);
  return {
    segmentId: requireProviderId(audience),
    from: resolveSender(app, project, body.from),
    subject,
    ...bodies,
    ...(scheduledAt !== undefined && { scheduledAt }),
  };
}

function readSchedule(value: string | null | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  const moment = findDate(value);
  if (!moment) throw invalid('INVALID_MAIL', 'scheduledAt must be an ISO 8601 date-time');
  return moment.toISOString();
}
