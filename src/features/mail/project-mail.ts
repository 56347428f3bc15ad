import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { forbidden, invalid, unavailable } from '../../errors.js';
import { openResend, callResend, openResendClient } from '../../platform/mail-provider/resend.js';
import type { EncryptedField, EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import type { MailProvider } from '../../platform/mail-provider/mail-provider.js';
import type { Project } from '../projects/project.js';
import { PROJECTS, updateProjectRecord } from '../projects/project-store.js';
import { isEmailAddress, isOneLine } from '../../platform/schema/text-forms.js';

const BYOK_FORM = /^re_[A-Za-z0-9_]+$/;

/** Changes of a project's mail settings (rest-api.md 2.9); null clears, absent leaves as it is. */
export interface MailSettings {
  providerApiKey?: string | null;
  providerFromEmail?: string | null;
  /** Checks the events of the project's own provider account. */
  webhookSecret?: string | null;
}

/**
 * Sets a project's mail settings by one write; secrets are encrypted and bound to project and field. 400 for a bad
 * form, nothing is changed then.
 */
export async function setMailSettings(app: App, project: Project, settings: MailSettings): Promise<Project> {
  const { $set, $unset } = readMailChanges(app, project, settings);
  return updateProjectRecord(app, project._id, { $set, ...(Object.keys($unset).length > 0 && { $unset }) });
}

/** The settings as changes of the project's record; secrets are encrypted. 400 for a bad form. */
export function readMailChanges(
  app: Pick<App, 'secrets'>,
  project: Pick<Project, '_id'>,
  settings: MailSettings,
): { $set: Partial<Project>; $unset: Record<string, ''> } {
  const $set: Record<string, unknown> = {};
  const $unset: Record<string, ''> = {};
  const put = (name: string, value: string | null | undefined): void => {
    if (value === null) $unset[`mail.${name}`] = '';
    else if (value !== undefined) $set[`mail.${name}`] = value;
  };
  const { providerApiKey, providerFromEmail, webhookSecret } = settings;
  if (typeof providerApiKey === 'string') checkMailKey(providerApiKey);
  if (typeof providerFromEmail === 'string' && !isSender(providerFromEmail)) {
    throw invalid('INVALID_MAIL', 'The default sender must be an address, or Name <address>');
  }
  if (typeof webhookSecret === 'string' && !/^whsec_[A-Za-z0-9+/=]{16,200}$/.test(webhookSecret)) {
    throw invalid('INVALID_MAIL', 'The webhook secret must start with whsec_');
  }
  put('encryptedKey', providerApiKey && app.secrets.encrypt(providerApiKey, encryptionContext(project._id, 'key')));
  put('keyHint', providerApiKey && `re_…${providerApiKey.slice(-4)}`);
  put('fromEmail', providerFromEmail);
  put(
    'encryptedWebhookSecret',
    webhookSecret && app.secrets.encrypt(webhookSecret, encryptionContext(project._id, 'webhook')),
  );
  return { $set: $set, $unset };
}

/** 400 INVALID_MAIL_KEY unless the text has the form of a provider key. */
export function checkMailKey(key: string): void {
  if (!BYOK_FORM.test(key) || key.length > 200) {
    throw invalid('INVALID_MAIL_KEY', 'The mail provider key must match ^re_[A-Za-z0-9_]+$');
  }
}

/** A project's mail settings as shown: secrets masked. */
export function presentMailSettings(project: Project) {
  return {
    providerApiKey: project.mail?.keyHint ?? null,
    providerFromEmail: project.mail?.fromEmail ?? null,
    webhookSecret: project.mail?.encryptedWebhookSecret ? 'whsec_…' : null,
  };
}

/** The project's own provider key, or null. Opened for each use and never kept. */
export function findByokKey(app: Pick<App, 'secrets'>, project: Project): string | null {
  const encrypted = project.mail?.encryptedKey;
  return encrypted ? app.secrets.decrypt(encrypted, encryptionContext(project._id, 'key')) : null;
}

/** findByokKey with 403 BYOK_REQUIRED without one. */
export function requireByokKey(app: Pick<App, 'secrets'>, project: Project): string {
  const key = findByokKey(app, project);
  if (!key) throw forbidden('BYOK_REQUIRED', 'This needs the project’s own mail provider key (providerApiKey)');
  return key;
}

/** The secret that signs events of the project's own provider account, or null. */
export function findProjectWebhookSecret(app: Pick<App, 'secrets'>, project: Project): string | null {
  const encrypted = project.mail?.encryptedWebhookSecret;
  return encrypted ? app.secrets.decrypt(encrypted, encryptionContext(project._id, 'webhook')) : null;
}

/** The provider of a project's mail: its own account when it has a key, else the service's provider. */
export function chooseProvider(app: App, project: Project): { provider: MailProvider; usingByok: boolean } {
  const apiKey = findByokKey(app, project);
  return apiKey === null
    ? { provider: app.mail, usingByok: false }
    : { provider: openResend({ apiKey, baseUrl: app.config.resendBaseUrl }), usingByok: true };
}

/**
 * Sender resolution (rest-api.md 4.4): the request's, the project's default, the server's default; 400 when there is
 * none. Mail that only goes into the outbox needs no sender, so that it works before anything is set.
 */
export function resolveSender(app: Pick<App, 'config' | 'mail'>, project: Project, requested?: string): string {
  const sender = requested ?? project.mail?.fromEmail ?? app.config.mailFrom;
  if (sender) return sender;
  if (app.mail.name === 'outbox' && !project.mail?.encryptedKey) return `${project.name} <no-reply@localhost>`;
  throw invalid(
    'SENDER_MISSING',
    'There is no sender: give from, or set a default for the project (providerFromEmail)',
  );
}

function encryptionContext(projectId: ObjectId, field: 'key' | 'webhook'): string {
  return `project:${projectId.toHexString()}:mail:${field}`;
}

export const ENCRYPTED_MAIL_SETTINGS: EncryptedPlace = {
  collection: PROJECTS,
  fields: (record) => {
    const { _id, mail } = record as Project;
    const encrypted = [
      { path: 'mail.encryptedKey', encrypted: mail?.encryptedKey, context: encryptionContext(_id, 'key') },
      {
        path: 'mail.encryptedWebhookSecret',
        encrypted: mail?.encryptedWebhookSecret,
        context: encryptionContext(_id, 'webhook'),
      },
    ];
    return encrypted.filter((field): field is EncryptedField => field.encrypted !== undefined);
  },
};

/** A sender: a bare address, or `Name <address>` on one line. */
export function isSender(value: unknown): value is string {
  if (typeof value !== 'string' || !isOneLine(value)) return false;
  const named = /^[^<>",;]{1,100}<([^<>]+)>$/.exec(value);
  return isEmailAddress(named?.[1] ?? value);
}

/**
 * Asks the mail provider whether it knows the key: 400 when it does not, 503 when it does not answer. A key that may
 * only send is a good one.
 */
export async function verifyMailKey(app: Pick<App, 'config'>, apiKey: string): Promise<void> {
  const client = await openResendClient(apiKey, app.config.resendBaseUrl);
  const reply = await callResend<unknown>((signal) => client.segments.list(undefined, { signal }));
  if (reply.data !== null || reply.error?.name === 'restricted_api_key') return;
  const status = reply.error?.statusCode ?? null;
  if (status === 401 || status === 403 || status === 400) {
    throw invalid('MAIL_KEY_REFUSED', 'The mail provider does not accept this key');
  }
  throw unavailable(
    'MAIL_PROVIDER_UNAVAILABLE',
    'The mail provider cannot be reached to check the key: try again, or store it without the check',
  );
}
