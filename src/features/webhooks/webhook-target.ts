import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { mapOf, text } from '../../platform/schema/schema.js';
import type { StoredWebhook, Webhook } from './webhook.js';

const MAX_HEADERS = 10;
const MAX_VALUE_CHARACTERS = 2_048;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
/** Printable ASCII, as HTTP sends it. */
const HEADER_VALUE = /^[\x20-\x7e]*$/;
/** Set by the delivery itself, or by the connection. */
const OWN_HEADERS =
  /^(host|connection|content-(length|type|encoding)|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|webhook-.*)$/i;

/** Headers of a webhook in a request or a file. */
export const HEADERS = {
  ...mapOf(text({ maxLength: MAX_VALUE_CHARACTERS })),
  maxProperties: MAX_HEADERS,
  description:
    'Headers to send with each delivery, such as `Authorization`. Their values are stored encrypted and never shown.',
};

/** Where a webhook's deliveries go, and with which headers. Both may hold secrets. */
type Target = Pick<Webhook, 'url' | 'headers'>;

/** 400 INVALID_HEADERS for headers that a delivery cannot send. */
export function checkHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) {
    throw invalid('INVALID_HEADERS', `A webhook sends at most ${MAX_HEADERS} headers of its own`);
  }
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, 64));
    if (!HEADER_NAME.test(name)) throw invalid('INVALID_HEADERS', `${shown} is not the name of a header`);
    if (OWN_HEADERS.test(name)) throw invalid('INVALID_HEADERS', `The header ${shown} is set by the delivery itself`);
    if (seen.has(name.toLowerCase())) throw invalid('INVALID_HEADERS', `The header ${shown} is given twice`);
    if (!HEADER_VALUE.test(value) || value.trim() !== value || value.length > MAX_VALUE_CHARACTERS) {
      throw invalid(
        'INVALID_HEADERS',
        `The value of the header ${shown} must be printable ASCII without blanks at its ends`,
      );
    }
    seen.add(name.toLowerCase());
  }
  return Object.fromEntries(entries);
}

export const encryptionContext = (projectId: ObjectId, webhookId: ObjectId): string =>
  `project:${projectId.toHexString()}:webhook:${webhookId.toHexString()}`;

/** The webhook as it is stored: the address may hold a token, and headers mostly do. */
export function encryptTarget(app: Pick<App, 'secrets'>, projectId: ObjectId, webhook: Webhook): StoredWebhook {
  const { url, headers, ...rest } = webhook;
  const target: Target = { url, headers };
  return { ...rest, target: app.secrets.encrypt(JSON.stringify(target), encryptionContext(projectId, webhook.id)) };
}

export function openTarget(app: Pick<App, 'secrets'>, projectId: ObjectId, stored: StoredWebhook): Webhook {
  const { target, ...rest } = stored;
  return { ...rest, ...(JSON.parse(app.secrets.decrypt(target, encryptionContext(projectId, stored.id))) as Target) };
}
