import type { App } from '../../app.js';
import { AppError, invalid, missing, overLimit, unavailable } from '../../errors.js';
import { callResend, isProviderId, openResendClient, type ResendReply } from '../../platform/mail-provider/resend.js';
import type { Project } from '../projects/project.js';
import { isMailAddress, isOneLine } from './mail-address.js';
import { requireByokKey } from './project-mail.js';
import { refuseLongWait, waitForTurn } from './sending/provider-pace.js';

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
  await refuseLongWait(app, project);
  await waitForTurn(app, project);
  const reply = await callResend((signal) => call(client, signal));
  if (reply.data !== null) return reply.data;
  throw providerError(reply);
}

/** The provider's refusal in our words; its own text is passed on where it tells the caller what to change. */
function providerError(reply: ResendReply<unknown>): AppError {
  const { statusCode, message } = reply.error ?? { statusCode: null, message: '' };
  if (statusCode === 404) return missing('NOT_FOUND', 'The mail provider knows nothing by that id');
  if (statusCode === 401 || statusCode === 403) {
    return new AppError('forbidden', 'MAIL_KEY_REFUSED', 'The mail provider refuses the project’s key');
  }
  if (statusCode === 429)
    return overLimit('RATE_LIMITED', 'The mail provider’s rate limit is exceeded', { retryAfterSeconds: 1 });
  if (statusCode !== null && statusCode < 500)
    return invalid('INVALID_MAIL', `The mail provider says: ${message.slice(0, 300)}`);
  return unavailable('MAIL_PROVIDER_UNAVAILABLE', 'The mail provider cannot be reached', { retryAfterSeconds: 5 });
}

/** 404 for what cannot be a provider's id: such a text must never become part of its paths. */
export function requireProviderId(text: string): string {
  if (!isProviderId(text)) throw missing('NOT_FOUND', 'The mail provider knows nothing by that id');
  return text;
}

export function listAudiences(app: App, project: Project): Promise<unknown> {
  return onOwnAccount(app, project, (client, signal) => client.segments.list(undefined, { signal }));
}

export function createAudience(app: App, project: Project, body: Record<string, unknown>): Promise<unknown> {
  const { name } = body;
  if (typeof name !== 'string' || name.trim() === '' || name.length > 200)
    throw invalid('INVALID_MAIL', 'name is required');
  if (!isOneLine(name)) throw invalid('INVALID_MAIL', 'name must be one line of text');
  return onOwnAccount(app, project, (client, signal) => client.segments.create({ name }, { signal }));
}

export function deleteAudience(app: App, project: Project, audienceId: string): Promise<unknown> {
  const id = requireProviderId(audienceId);
  return onOwnAccount(app, project, (client, signal) => client.segments.remove(id, { signal }));
}

/** Fields of a contact that a client may give (rest-api.md 4.4). */
interface ContactFields {
  email?: string;
  firstName?: string;
  lastName?: string;
  unsubscribed?: boolean;
}

export function listContacts(app: App, project: Project, audienceId: string): Promise<unknown> {
  const id = requireProviderId(audienceId);
  return onOwnAccount(app, project, (client, signal) => client.contacts.list({ segmentId: id }, { signal }));
}

export function createContact(
  app: App,
  project: Project,
  audienceId: string,
  body: Record<string, unknown>,
): Promise<unknown> {
  const id = requireProviderId(audienceId);
  const { email, ...fields } = readContact(body);
  if (email === undefined) throw invalid('INVALID_MAIL', 'email is required');
  return onOwnAccount(app, project, (client, signal) =>
    client.contacts.create({ audienceId: id, email, ...fields }, { signal }),
  );
}

export function updateContact(
  app: App,
  project: Project,
  audienceId: string,
  contactId: string,
  body: Record<string, unknown>,
): Promise<unknown> {
  const [audience, contact] = [requireProviderId(audienceId), requireProviderId(contactId)];
  const { email, ...fields } = readContact(body);
  if (email === undefined && Object.keys(fields).length === 0)
    throw invalid('INVALID_BODY', 'There is nothing to change');
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

function readContact(body: Record<string, unknown>): ContactFields {
  const { email, unsubscribed } = body;
  const fields: ContactFields = {};
  if (email !== undefined) {
    if (!isMailAddress(email)) throw invalid('INVALID_MAIL', 'email must be a valid email address');
    fields.email = email;
  }
  for (const name of ['firstName', 'lastName'] as const) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'string' || value.length > 200 || !isOneLine(value))
      throw invalid('INVALID_MAIL', `${name} must be one line of text`);
    fields[name] = value;
  }
  if (unsubscribed !== undefined) {
    if (typeof unsubscribed !== 'boolean') throw invalid('INVALID_MAIL', 'unsubscribed must be true or false');
    fields.unsubscribed = unsubscribed;
  }
  return fields;
}
