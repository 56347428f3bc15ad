import type { App } from '../../app.js';
import { declareCollection } from '../collections/schema/collection-declaration.js';
import { listCollections } from '../collections/collection-store.js';
import { PUBLIC_EMAIL, USERS } from '../collections/users-collection.js';
import type { Collection } from '../collections/collection.js';
import type { Field } from '../collections/fields/field.js';
import { findBucketAccess } from '../files/bucket/project-bucket.js';
import { findByokKey, findProjectWebhookSecret } from '../mail/project-mail.js';
import { OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import type { Project } from '../projects/project.js';
import { signInOf, tokenAlgorithmOf } from '../projects/sign-in-settings.js';
import { listSocialProviders, openClientSecret, providerSettings } from '../users/social/social-provider.js';
import { presentHooks, SCHEDULE_KIND, TEMPLATE_KIND, WEBHOOK_KIND } from './item-kinds.js';
import {
  type BucketDeclaration,
  type HookDeclaration,
  type ProjectDeclaration,
  type ProviderDeclaration,
  type ScheduleDeclaration,
  type TemplateDeclaration,
  type WebhookDeclaration,
  nameSecrets,
} from './project-declaration.js';

/**
 * The declaration that makes a project what this one is; applying it to this one changes nothing. It refers to secrets
 * by names of variables, whose values `secrets` takes. Of several webhooks with one address it has the oldest.
 */
export async function declareProject(
  app: App,
  project: Project,
  secrets = new Map<string, string>(),
): Promise<ProjectDeclaration> {
  const name = nameSecrets(project.name, secrets);
  const collections = await listCollections(app, project._id);
  const users = collections.find(({ name }) => name === USERS);
  const limits = Object.entries(project.limits).filter(([name]) => OVERRIDABLE_LIMITS.includes(name));
  return {
    name: project.name,
    plan: project.plan,
    allowedDomains: project.allowedDomains,
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
    storage: { publishableUploads: project.storage?.publishableUploads ?? false, ...declareBucket(app, project, name) },
    signIn: {
      ...((project.signIn ?? tokenAlgorithmOf(project) !== 'HS256') && signInOf(project)),
      providers: await declareProviders(app, project, name),
    },
    users: declareUsers(users),
    collections: collections.filter((collection) => collection !== users).map(declareCollection),
    mail: {
      from: project.mail?.fromEmail ?? null,
      ...declareMailAccount(app, project, name),
      templates: await declareTemplates(app, project),
    },
    webhooks: await declareWebhooks(app, project, name),
    ...(await declareOwnCode(app, project)),
  };
}

/** Fields of users that a declaration names: email and password are always there. */
function isOwn(field: Field): boolean {
  return field.name === PUBLIC_EMAIL.name ? field.public === true : field.name !== 'password';
}

type SecretNames = ReturnType<typeof nameSecrets>;

function declareBucket(app: App, project: Project, name: SecretNames): { bucket?: BucketDeclaration } {
  const access = findBucketAccess(app, project);
  if (!access) return {};
  return { bucket: { ...access, secretAccessKey: name(access.secretAccessKey, 'bucket_secret_access_key') } };
}

function declareMailAccount(app: App, project: Project, name: SecretNames): ProjectDeclaration['mail'] {
  const [key, webhookSecret] = [findByokKey(app, project), findProjectWebhookSecret(app, project)];
  return {
    ...(key !== null && { providerKey: name(key, 'mail_provider_key') }),
    ...(webhookSecret !== null && { webhookSecret: name(webhookSecret, 'mail_webhook_secret') }),
  };
}

async function declareProviders(app: App, project: Project, name: SecretNames): Promise<ProviderDeclaration[]> {
  return (await listSocialProviders(app, project)).map((provider) => {
    const { kind: _, apple, ...settings } = providerSettings(provider);
    const clientSecret = name(openClientSecret(app, provider), provider.name, 'client_secret');
    return { ...settings, ...(apple && { apple }), clientSecret };
  });
}

function declareUsers(users: Collection | undefined): NonNullable<ProjectDeclaration['users']> {
  if (!users) return { fields: [] };
  const { fields = [], indexes = [], uniques, changes } = declareCollection(users);
  return {
    fields: fields.filter(isOwn),
    ...(indexes.length > 0 && { indexes }),
    ...(uniques && { uniques }),
    ...(changes && { changes }),
  };
}

async function declareTemplates(app: App, project: Project): Promise<TemplateDeclaration[]> {
  return (await TEMPLATE_KIND.list(app, project)).map(({ name, subject, html, text }) => ({
    name,
    subject,
    ...(html !== undefined && { html }),
    ...(text !== undefined && { text }),
  }));
}

async function declareWebhooks(app: App, project: Project, name: SecretNames): Promise<WebhookDeclaration[]> {
  const webhooks = await WEBHOOK_KIND.list(app, project);
  const oldest = webhooks.filter(({ url }, at) => webhooks.findIndex((other) => other.url === url) === at);
  return oldest.map(({ url, events, description, disabled, headers = {} }) => ({
    url,
    events,
    ...(description !== '' && { description }),
    enabled: disabled === null,
    ...(Object.keys(headers).length > 0 && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([header, value]) => [header, name(value, new URL(url).hostname, header)]),
      ),
    }),
  }));
}

/** The address, or the file in its folder; a handler that has the item's own name is not named again. */
function declareTarget(
  folder: string | undefined,
  name: string,
  { url, run }: { url: string | null; run: string | null },
) {
  if (url !== null) return { url };
  return { run: `${folder ?? '.'}/${run?.endsWith(`#${name}`) ? run.slice(0, -name.length - 1) : run}` };
}

async function declareOwnCode(
  app: App,
  project: Project,
): Promise<Pick<ProjectDeclaration, 'hooks' | 'schedules' | 'ownCode'>> {
  const { dir, env = [] } = project.ownCode ?? {};
  const folder = app.config.hooksDir === null ? dir : undefined;
  const hooks = (await presentHooks(app, project)).map(({ event, onFailure, timeoutMs, ...calls }): HookDeclaration => {
    const target = declareTarget(folder, event, calls);
    return onFailure === 'retry' ? { event, ...target } : { event, ...target, onFailure, timeout: timeoutMs };
  });
  const schedules = (await SCHEDULE_KIND.list(app, project)).map(
    ({ name, cron, timeZone, missed, ...calls }): ScheduleDeclaration => ({
      ...{ name, cron, timeZone, missed },
      ...declareTarget(folder, name, calls),
    }),
  );
  const isThere = folder !== undefined || env.length > 0;
  return {
    ...(hooks.length > 0 && { hooks }),
    ...(isThere && { ownCode: { ...(folder !== undefined && { folder }), ...(env.length > 0 && { env }) } }),
    ...(schedules.length > 0 && { schedules }),
  };
}
