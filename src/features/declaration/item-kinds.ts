import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import {
  addAfter,
  listAfter,
  parseTimeout,
  presentAfter,
  presentHook,
  readAfterEvent,
  removeAfter,
  removeHook,
  setHook,
} from '../hooks/change-hooks.js';
import {
  addSchedule,
  presentSchedule,
  readRepetition,
  removeSchedule,
  setSchedule,
} from '../hooks/change-schedules.js';
import { requireHookEvent } from '../hooks/hook.js';
import { listSchedules } from '../hooks/schedule.js';
import { type MailTemplate, removeTemplate, setTemplate, templateStore } from '../mail/mail-template.js';
import { checkTemplate } from '../mail/render-template.js';
import { readOwnFile } from '../projects/own-code.js';
import type { Project } from '../projects/project.js';
import {
  listSocialProviders,
  openClientSecret,
  providerSettings,
  removeSocialProvider,
  resolveProvider,
  setSocialProvider,
  type ProviderSettings,
  type SocialProvider,
} from '../users/social/social-provider.js';
import { addWebhook, isOwnHandler, listWebhooks } from '../webhooks/add-webhook.js';
import { editWebhook, removeWebhook } from '../webhooks/edit-webhook.js';
import { namedCollections, parseEvents } from '../webhooks/webhook-event.js';
import { checkHeaders, type Webhook } from '../webhooks/webhook-store.js';
import { listDifferent, type Kind } from './plan-items.js';
import {
  resolveSecret,
  type HookDeclaration,
  type ProviderDeclaration,
  type ScheduleDeclaration,
  type TemplateDeclaration,
  type WebhookDeclaration,
} from './project-declaration.js';

const PROVIDER_LABELS = {
  issuer: 'issuer',
  clientId: 'client id',
  apple: 'key of apple',
  appClientIds: 'client ids of apps',
  scopes: 'scopes',
  redirectUrls: 'addresses to return to',
  tokenInAddress: 'token in the address',
} as const;

export const PROVIDER_KIND: Kind<ProviderDeclaration, SocialProvider> = {
  kind: 'provider',
  list: listSocialProviders,
  nameOf: ({ name }) => name,
  compare({ clientSecret, ...settings }, stored, { app, project, secretOf }) {
    const before = stored && providerSettings(stored);
    const to = {
      ...(before && { ...before, apple: before.apple ?? undefined }),
      ...settings,
      clientSecret: resolveSecret(clientSecret, secretOf),
      // Who applies a file runs the whole service.
      mayBePrivate: true,
    };
    const wanted = resolveProvider(to);
    const apply = async (current: Project): Promise<null> => {
      await setSocialProvider(app, current, to);
      return null;
    };
    // In a project that is only being made nothing can be lost.
    const added = project ? [`sign-in provider ${wanted.name}`] : [];
    if (!stored || !before) return { what: [wanted.issuer], loosens: added, apply };
    const isKept = openClientSecret(app, stored) === to.clientSecret;
    const what = listDifferent(PROVIDER_LABELS, [before, wanted]);
    if (!isKept) what.push('client secret: another one');
    return { what, loosens: listLoosened(before, wanted), apply };
  },
  remove: (app, project, { name }) => removeSocialProvider(app, project, name),
};

/** Whose word for a user counts from now on, and where else browsers are sent with what that made. */
function listLoosened(before: ProviderSettings, wanted: ProviderSettings): string[] {
  const isMore = (name: 'appClientIds' | 'redirectUrls'): boolean =>
    wanted[name].some((each) => !before[name].includes(each));
  const loosened: Record<string, boolean> = {
    issuer: wanted.issuer !== before.issuer,
    clientId: wanted.clientId !== before.clientId,
    appClientIds: isMore('appClientIds'),
    redirectUrls: isMore('redirectUrls'),
    tokenInAddress: wanted.tokenInAddress && !before.tokenInAddress,
  };
  return Object.entries(PROVIDER_LABELS)
    .filter(([name]) => loosened[name])
    .map(([, label]) => `sign-in provider ${wanted.name}: ${label}`);
}

/** A project's own mail templates. */
export const TEMPLATE_KIND: Kind<TemplateDeclaration, MailTemplate> = {
  kind: 'template',
  list: (app, { _id }) => templateStore(app).find({ projectId: _id, scope: 'project' }).sort({ name: 1 }).toArray(),
  nameOf: ({ name }) => name,
  compare({ name, ...to }, stored, { app }) {
    checkTemplate(to);
    const what = (['subject', 'html', 'text'] as const).filter((part) => stored?.[part] !== to[part]);
    return {
      ...(stored && { what: what.map((part) => `~ ${part}`) }),
      async apply(project) {
        await setTemplate(app, project, name, to);
        return null;
      },
    };
  },
  remove: (app, project, { name }) => removeTemplate(app, project, name),
};

/** Webhooks by their addresses; handlers of files are hooks. */
export const WEBHOOK_KIND: Kind<WebhookDeclaration, Webhook> = {
  kind: 'webhook',
  list: async (app, project) => (await listWebhooks(app, project)).filter(({ url }) => !isOwnHandler(url)),
  nameOf: ({ url }) => normalise(url),
  compare({ headers, ...declared }, stored, { app, secretOf }) {
    const url = normalise(declared.url);
    const values = Object.entries(headers ?? {}).map(([name, value]) => [name, resolveSecret(value, secretOf)]);
    const wanted = {
      ...declared,
      events: parseEvents(declared.events),
      ...(headers && { headers: checkHeaders(Object.fromEntries(values) as Record<string, string>) }),
    };
    const collections = namedCollections(wanted.events);
    if (!stored) {
      const apply = async (project: Project): Promise<string | null> =>
        (await addWebhook(app, project, { ...wanted, url, ifNotExists: true })).secret;
      return { collections, apply };
    }
    return {
      what: compareWebhook(stored, wanted),
      collections,
      async apply(project) {
        const { url: _same, ...changes } = wanted;
        await editWebhook(app, project, stored.id.toHexString(), changes);
        return null;
      },
    };
  },
  remove: (app, project, { id }) => removeWebhook(app, project, id.toHexString()),
};

function normalise(text: string): string {
  if (!URL.canParse(text)) throw invalid('INVALID_URL', `The webhook address "${text.slice(0, 200)}" is no url`);
  const url = new URL(text);
  url.hash = '';
  return url.href;
}

function compareWebhook(
  webhook: Webhook,
  to: Omit<WebhookDeclaration, 'headers'> & { headers?: Record<string, string> },
): string[] {
  const what: string[] = [];
  const enabled = webhook.disabled === null;
  const [before, after] = [webhook.events, to.events].map((events) => [...events].sort().join(', '));
  if (before !== after) what.push(`events: ${before} -> ${after}`);
  if (to.description !== undefined && to.description !== webhook.description) {
    what.push(`description: ${webhook.description || 'none'} -> ${to.description || 'none'}`);
  }
  if (to.enabled !== undefined && to.enabled !== enabled) what.push(to.enabled ? 'off -> on' : 'on -> off');
  if (to.headers) what.push(...compareHeaders(webhook.headers ?? {}, to.headers));
  return what;
}

/** By name alone: values are shown nowhere. */
function compareHeaders(before: Record<string, string>, after: Record<string, string>): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => `header ${name}: ${name in after ? (name in before ? 'another value' : 'added') : 'removed'}`);
}

/** The hooks of a project as shown, including event handlers. */
export async function presentHooks(app: App, project: Project) {
  const after = await listAfter(app, project);
  return [
    ...(project.hooks ?? []).map((hook) => presentHook(app, project, hook)),
    ...after.map(({ event, ...webhook }) => presentAfter(event, webhook)),
  ];
}

type ShownHook = Awaited<ReturnType<typeof presentHooks>>[number];

const isAfter = (event: string): boolean => event.startsWith('after.');

/** Hooks by their events. */
export const HOOK_KIND: Kind<HookDeclaration, ShownHook> = {
  kind: 'hook',
  list: presentHooks,
  nameOf: ({ event }) => event,
  compare(to, stored, { app }) {
    const target = checkHook(to);
    const { event, timeout: timeoutMs, url, run, onFailure } = to;
    return {
      ...(stored && { what: compareHook(stored, to, target) }),
      collections: [event.replace(/^after\./, '').split('.')[0]!],
      async apply(project) {
        if (!isAfter(event)) return (await setHook(app, project, { event, url, run, onFailure, timeoutMs })).secret;
        if (stored) await removeAfter(app, project, event);
        await addAfter(app, project, { event, run, ifNotExists: true });
        return null;
      },
    };
  },
  remove: (app, project, { event }) => (isAfter(event) ? removeAfter : removeHook)(app, project, event),
};

/** What a hook calls. 400 for what no hook can be. */
function checkHook({ event, url, run, timeout, onFailure }: HookDeclaration): string {
  if ((url === undefined) === (run === undefined)) {
    throw invalid('INVALID_FILE', `The hook of ${event} names either a url or a file to run`);
  }
  if (url !== undefined && !URL.canParse(url)) {
    throw invalid('INVALID_URL', `The address "${url.slice(0, 200)}" of the hook ${event} is no url`);
  }
  if (isAfter(event)) {
    readAfterEvent(event);
    if (run === undefined) throw invalid('INVALID_FILE', `${event} runs a file: an address is declared under webhooks`);
    if (timeout !== undefined || onFailure !== undefined) {
      throw invalid('INVALID_FILE', `${event} is tried again as a webhook is: it has no timeout and no onFailure`);
    }
  } else {
    requireHookEvent(event);
    parseTimeout(timeout);
  }
  return run === undefined ? new URL(url!).href : readOwnFile(run, event).handler;
}

function compareHook(hook: ShownHook, to: HookDeclaration, target: string): string[] {
  const present = hook.url ?? hook.run;
  const what = target === present ? [] : [`${present} -> ${target}`];
  const timeout = to.timeout ?? hook.timeoutMs;
  if (timeout !== hook.timeoutMs) what.push(`timeout: ${hook.timeoutMs} -> ${timeout} ms`);
  const onFailure = to.onFailure ?? hook.onFailure;
  if (onFailure !== hook.onFailure) what.push(`on failure: ${hook.onFailure} -> ${onFailure}`);
  return what;
}

const SCHEDULE_LABELS = { cron: 'cron', timeZone: 'timeZone', missed: 'missed', calls: 'calls' };

export const SCHEDULE_KIND: Kind<ScheduleDeclaration, ReturnType<typeof presentSchedule>> = {
  kind: 'schedule',
  list: async (app, { _id }) => (await listSchedules(app, _id)).map((schedule) => presentSchedule(app, schedule)),
  nameOf: ({ name }) => name,
  compare(to, stored, { app }) {
    const { name, url, run } = to;
    if ((url === undefined) === (run === undefined) || (url !== undefined && !URL.canParse(url))) {
      throw invalid('INVALID_FILE', `The schedule ${name} names either a url or a file to run`);
    }
    const calls = run === undefined ? new URL(url!).href : readOwnFile(run, name).handler;
    const wanted = { ...readRepetition(to), calls };
    if (!stored) {
      return { apply: async (project) => (await addSchedule(app, project, { ...to, ifNotExists: true })).secret };
    }
    const what = listDifferent(SCHEDULE_LABELS, [{ ...stored, calls: stored.url ?? stored.run }, wanted]);
    return { what, apply: (project) => setSchedule(app, project, to) };
  },
  remove: (app, project, { name }) => removeSchedule(app, project, name),
};
