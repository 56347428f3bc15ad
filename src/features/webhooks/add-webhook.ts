import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import {
  readProjectWebhooks,
  createWebhookSecret,
  changeWebhooks,
  checkHeaders,
  MAX_WEBHOOKS,
  type Webhook,
} from './webhook-store.js';
import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import { invalid, forbidden } from '../../errors.js';
import { listCollections } from '../collections/collection-store.js';
import { namedCollections, parseEvents } from './webhook-event.js';
import { findLimit } from '../plans/plan-limits.js';
import type { Config } from '../../config/config.js';
import { requirePublicTarget } from '../../platform/network/require-public-target.js';

/** The webhooks of a project, oldest first. */
export async function listWebhooks(app: App, project: Project): Promise<Webhook[]> {
  return (await readProjectWebhooks(app, project._id)).webhooks;
}

const MAX_CHARACTERS = 2_048;
const DEVELOPMENT =
  '; http and private addresses only where BSVC_WEBHOOK_ALLOW_PRIVATE=true is set, for the server and for this command';

/**
 * A target address in its normal form; 400 INVALID_URL for one that is not an https address (http too where private
 * targets are allowed), carries a password, or is not public.
 */
export async function requireTargetUrl(app: App, text: string): Promise<string> {
  const url = parseTargetUrl(app.config, text);
  await requirePublicTarget(app.outbound, url, 'url');
  return url.href;
}

/** True for a handler in a file of the project, as the address of a webhook has it: `run:orders.mjs#added`. */
export const isOwnHandler = (url: string): boolean => url.startsWith('run:');
/** A target address as far as its text can be judged; 400 INVALID_URL. */
export function parseTargetUrl({ webhookAllowPrivate: allowPrivate }: Config, text: string): URL {
  const url = text.length <= MAX_CHARACTERS && URL.canParse(text) ? new URL(text) : null;
  if (!url || !(url.protocol === 'https:' || (allowPrivate && url.protocol === 'http:'))) {
    throw invalid(
      'INVALID_URL',
      `The url must be an https:// address of at most ${MAX_CHARACTERS} characters${url?.protocol === 'http:' ? DEVELOPMENT : ''}`,
    );
  }
  if (url.username || url.password) {
    throw invalid('INVALID_URL', 'The url must not hold a user name or password: deliveries are signed instead');
  }
  url.hash = '';
  return url;
}

interface NewWebhook {
  url: string;
  /** `url` is a handler of a file, checked already: hooks alone make such a one. */
  isHandler?: true;
  events: readonly unknown[];
  description?: string;
  /** False: it gets no events until it is enabled. */
  enabled?: boolean;
  /** Refuse an event of a collection that the project does not have (yet). */
  strict?: boolean;
  /** Sent with each delivery. */
  headers?: Readonly<Record<string, string>>;
  /** Answer an existing webhook with that address instead of adding a second one. */
  ifNotExists?: boolean;
}

interface AddedWebhook {
  webhook: Webhook;
  /** Shown once; null when the webhook was there already. */
  secret: string | null;
  created: boolean;
  /** Differences between the request and the webhook that was there already, one line each. */
  unmet: string[];
}

export const MAX_DESCRIPTION_CHARACTERS = 200;

/**
 * Registers a webhook by one conditional write, so that creations at once never exceed the plan. 400 for a bad url or
 * event, 403 WEBHOOK_LIMIT.
 */
export async function addWebhook(app: App, project: Project, input: NewWebhook): Promise<AddedWebhook> {
  const events = parseEvents(input.events);
  const [absent] = input.strict ? await listAbsentCollections(app, project, events) : [];
  if (absent !== undefined) throw invalid('INVALID_EVENTS', `There is no collection "${absent}" in this project`);
  const url = input.isHandler ? input.url : await requireTargetUrl(app, input.url);
  const headers = input.headers && checkHeaders(input.headers);
  const now = new Date(app.clock.now());
  const id = new ObjectId();
  const { value, secret } = createWebhookSecret(app, project._id, id);
  const webhook: Webhook = {
    id,
    url,
    ...(headers && { headers }),
    events,
    description: checkDescription(input.description ?? ''),
    disabled: input.enabled === false ? 'requested' : null,
    secrets: [secret],
    failingSince: null,
    createdAt: now,
    updatedAt: now,
  };
  let existing: Webhook | undefined;
  await changeWebhooks(app, project._id, (webhooks) => {
    // A file has one handler for an event, and one handler may receive several.
    const isSame = (other: Webhook): boolean =>
      input.isHandler ? isOwnHandler(other.url) && isDeepStrictEqual(other.events, events) : other.url === url;
    existing = input.ifNotExists ? webhooks.find(isSame) : undefined;
    if (existing) return [...webhooks];
    requireWebhookRoom(project, webhooks, url);
    return [...webhooks, webhook];
  });
  if (!existing) return { webhook, secret: value, created: true, unmet: [] };
  return { webhook: existing, secret: null, created: false, unmet: listUnmet(existing, webhook, input) };
}

/** Collections that a subscription names and the project does not have: perhaps not yet, perhaps mistyped. */
export async function listAbsentCollections(app: App, project: Project, events: readonly string[]): Promise<string[]> {
  const present = new Set((await listCollections(app, project._id)).map(({ name }) => name));
  return namedCollections(events).filter((name) => !present.has(name));
}

function listUnmet(existing: Webhook, wanted: Webhook, { description }: NewWebhook): string[] {
  const events = wanted.events.filter((event) => !existing.events.includes(event)).map((event) => `+ ${event}`);
  const isTold = description === undefined || wanted.description === existing.description;
  return [...events, ...(isTold ? [] : [`description: ${existing.description || 'none'} -> ${wanted.description}`])];
}

/** 400 for a description that is too long. */
export function checkDescription(description: string): string {
  if (description.length > MAX_DESCRIPTION_CHARACTERS) {
    throw invalid('INVALID_DESCRIPTION', `A description has at most ${MAX_DESCRIPTION_CHARACTERS} characters`);
  }
  return description;
}

/** 403 WEBHOOK_LIMIT when a project may have no other webhook (rest-api.md 6.2); a plan limits addresses alone. */
function requireWebhookRoom(project: Project, webhooks: readonly Webhook[], url: string): void {
  const addresses = webhooks.filter((other) => !isOwnHandler(other.url)).length;
  const isBeyond = !isOwnHandler(url) && addresses >= (findLimit(project, 'webhooks') ?? MAX_WEBHOOKS);
  if (isBeyond || webhooks.length >= MAX_WEBHOOKS) throw forbidden('WEBHOOK_LIMIT', 'Webhook limit reached');
}
