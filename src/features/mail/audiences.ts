import type { App } from '../../app.js';
import { AppError, invalid, missing, overLimit, unavailable } from '../../errors.js';
import { callResend, isProviderId, openResendClient, type ResendReply } from '../../platform/mail-provider/resend.js';
import type { Project } from '../projects/project.js';
import { FLAG, openObject, orNull, text, type TypeOf } from '../../platform/schema/schema.js';
import { requireByokKey } from './project-mail.js';
import { ADDRESS } from './read-mail.js';
import { rejectLongWait, waitForTurn } from './sending/provider-pace.js';

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
export async function onOwnAccount<T>(
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
export function requireProviderId(text: string): string {
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
