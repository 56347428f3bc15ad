import { invalid } from '../../errors.js';
import { isOwnHandler } from '../webhooks/add-webhook.js';
import { parseEvents } from '../webhooks/webhook-event.js';
import { checkHeaders, type Webhook } from '../webhooks/webhook-store.js';
import { type WebhookDeclaration, resolveSecret, type FindSecret } from './project-declaration.js';

/** A webhook as it is declared, with the values of its headers. */
type WantedWebhook = Omit<WebhookDeclaration, 'headers'> & { headers?: Record<string, string> };

export type WebhookChange =
  | { action: 'add'; to: WantedWebhook }
  | { action: 'change'; id: string; what: string[]; to: WantedWebhook }
  | { action: 'drop'; id: string; url: string };

/**
 * The difference between a project's webhooks and the declared ones, by address; none without a declaration. Those not
 * named go only with `prune`. Pure; 400 for a bad one.
 */
export function planWebhooks(
  existing: readonly Webhook[],
  declared: readonly WebhookDeclaration[] | undefined,
  { prune, secretOf }: { prune: boolean; secretOf: FindSecret },
): WebhookChange[] {
  if (!declared) return [];
  const changes: WebhookChange[] = [];
  const named = new Set<string>();
  for (const declaration of declared) {
    const { headers, ...rest } = declaration;
    const to = {
      ...rest,
      url: normalise(declaration.url),
      events: parseEvents(declaration.events),
      ...(headers && { headers: resolveHeaders(headers, secretOf) }),
    };
    if (named.has(to.url)) throw invalid('INVALID_FILE', `The webhook ${to.url} is declared twice`);
    named.add(to.url);
    const webhook = existing.find(({ url }) => url === to.url);
    const what = webhook ? listDifferences(webhook, to) : [];
    if (!webhook) changes.push({ action: 'add', to });
    else if (what.length > 0) changes.push({ action: 'change', id: webhook.id.toHexString(), what, to });
  }
  // Handlers of files are declared as hooks.
  const dropped = prune ? existing.filter(({ url }) => !named.has(url) && !isOwnHandler(url)) : [];
  return [...changes, ...dropped.map(({ id, url }) => ({ action: 'drop' as const, id: id.toHexString(), url }))];
}

function resolveHeaders(
  headers: NonNullable<WebhookDeclaration['headers']>,
  secretOf: FindSecret,
): Record<string, string> {
  const values = Object.entries(headers).map(([name, value]) => [name, resolveSecret(value, secretOf)] as const);
  return checkHeaders(Object.fromEntries(values));
}

function normalise(text: string): string {
  if (!URL.canParse(text)) throw invalid('INVALID_URL', `The webhook address "${text.slice(0, 200)}" is no url`);
  const url = new URL(text);
  url.hash = '';
  return url.href;
}

function listDifferences(webhook: Webhook, to: WantedWebhook): string[] {
  const what: string[] = [];
  const enabled = webhook.disabled === null;
  const [before, after] = [webhook.events, to.events].map((events) => [...events].sort().join(', '));
  if (before !== after) what.push(`events: ${before} -> ${after}`);
  if (to.description !== undefined && to.description !== webhook.description) {
    what.push(`description: ${webhook.description || 'none'} -> ${to.description || 'none'}`);
  }
  if (to.enabled !== undefined && to.enabled !== enabled) what.push(to.enabled ? 'off -> on' : 'on -> off');
  if (to.headers) what.push(...listHeaderDifferences(webhook.headers ?? {}, to.headers));
  return what;
}

/** By name alone: values are shown nowhere. */
function listHeaderDifferences(before: Record<string, string>, after: Record<string, string>): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => `header ${name}: ${name in after ? (name in before ? 'another value' : 'added') : 'removed'}`);
}
