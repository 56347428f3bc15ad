import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Collection } from '../collections/collection.js';
import type { CollectionDeclaration } from '../collections/schema/collection-declaration.js';
import { listCollections } from '../collections/list-collections.js';
import { planSchema, type SchemaChange } from '../collections/schema/plan-schema.js';
import { defaultUsersCollection, PUBLIC_EMAIL, USERS } from '../collections/users-collection.js';
import { readMailChanges, type MailSettings } from '../mail/project-mail.js';
import { findProject } from '../projects/project-store.js';
import type { Project } from '../projects/project.js';
import { compareSignIn } from '../projects/sign-in-settings.js';
import {
  readDomain,
  readProjectChanges,
  requireChange,
  saveProjectChanges,
  type ProjectChanges,
} from '../projects/update-project.js';
import { listWebhooks } from '../webhooks/add-webhook.js';
import { namedCollections } from '../webhooks/webhook-event.js';
import { compareMailAccount, planBucket, type BucketChange } from './plan-accounts.js';
import { planHooks, type HookChange, type OwnCodeChange, planSchedules, type ScheduleChange } from './plan-own-code.js';
import { planProviders, type ProviderChange } from './plan-providers.js';
import { planWebhooks, type WebhookChange } from './plan-webhooks.js';
import type { ProjectDeclaration, FindSecret, SecretReference, TemplateDeclaration } from './project-declaration.js';
import { ObjectId } from 'bson';
import { verifyMailKey } from '../mail/verify-mail-key.js';
import { templateStore } from '../mail/mail-template.js';
import { checkTemplate, type MailText } from '../mail/render-template.js';

export type TemplateChange =
  | { action: 'add'; name: string; to: MailText }
  | { action: 'change'; name: string; what: string[]; to: MailText }
  | { action: 'drop'; name: string };

const PARTS = ['subject', 'html', 'text'] as const;

/**
 * The difference between a project's own mail templates and the declared ones; none without a declaration. Those not
 * named go only with `prune`. 400 for a bad one.
 */
async function planTemplates(
  app: App,
  project: Project | null,
  declared: readonly TemplateDeclaration[] | undefined,
  { prune }: { prune: boolean },
): Promise<TemplateChange[]> {
  if (!declared) return [];
  const stored = project ? await templateStore(app).find({ projectId: project._id, scope: 'project' }).toArray() : [];
  const existing = new Map(stored.map((template) => [template.name, template]));
  const changes: TemplateChange[] = [];
  const named = new Set<string>();
  for (const { name, ...to } of declared) {
    if (named.has(name)) throw invalid('INVALID_FILE', `The template "${name}" is declared twice`);
    named.add(name);
    checkTemplate(to);
    const template = existing.get(name);
    const what = PARTS.filter((part) => template?.[part] !== to[part]);
    if (!template) changes.push({ action: 'add', name, to });
    else if (what.length > 0) changes.push({ action: 'change', name, what: what.map((part) => `~ ${part}`), to });
  }
  const dropped = prune ? [...existing.keys()].filter((name) => !named.has(name)) : [];
  return [...changes, ...dropped.map((name) => ({ action: 'drop' as const, name }))];
}

/** 400 SECRET_MISSING, with all their names, for variables that are not set. */
function requireSecrets(declared: readonly ProjectDeclaration[], secretOf: FindSecret): void {
  const names = new Set(declared.flatMap(listReferences).map(({ env }) => env));
  const missing = [...names].filter((name) => !secretOf(name));
  if (missing.length === 0) return;
  const which = missing.length === 1 ? 'The environment variable' : 'The environment variables';
  const are = missing.length === 1 ? 'is not set: set it or write it' : 'are not set: set them or write them';
  throw invalid('SECRET_MISSING', `${which} ${missing.join(', ')} ${are} into .env`);
}

function listReferences({ signIn, mail, storage, webhooks = [] }: ProjectDeclaration): SecretReference[] {
  const single = [mail?.providerKey, mail?.webhookSecret, storage?.bucket?.secretAccessKey];
  return [
    ...(signIn?.providers ?? []).map(({ clientSecret }) => clientSecret),
    ...single.filter((reference) => reference !== undefined && reference !== null),
    ...webhooks.flatMap(({ headers = {} }) => Object.values(headers)),
  ];
}

/** The declaration without what needs a secret and without own code, for those who look at its collections alone. */
export function withoutSecrets(declaration: ProjectDeclaration): ProjectDeclaration {
  const {
    signIn,
    mail,
    storage,
    webhooks,
    hooks: _hooks,
    schedules: _schedules,
    ownCode: _ownCode,
    ...rest
  } = declaration;
  return {
    ...rest,
    ...(signIn && { signIn: { ...signIn, providers: undefined } }),
    ...(mail && { mail: { from: mail.from, templates: mail.templates } }),
    ...(storage && { storage: { publishableUploads: storage.publishableUploads } }),
    ...(webhooks && { webhooks: webhooks.map((webhook) => ({ ...webhook, headers: undefined })) }),
  };
}

/** How such a declaration is planned. */
export const NO_SECRETS = { prune: false, secretOf: (): undefined => undefined };

/** The difference between a declared project and the stored one. */
export interface ProjectPlan {
  name: string;
  /** null: it has to be created. */
  project: Project | null;
  settings: AnyProjectChanges;
  /** One line per changed setting. */
  what: string[];
  /** Those of them that grant more access. */
  loosens: string[];
  /** null: it stays as it is. */
  bucket: BucketChange | null;
  providers: ProviderChange[];
  collections: SchemaChange[];
  templates: TemplateChange[];
  webhooks: WebhookChange[];
  hooks: HookChange[];
  schedules: ScheduleChange[];
  ownCode: OwnCodeChange | null;
}

/**
 * Compares declared projects with the stored ones. Changes nothing. 400 for a project declared twice, for a secret that
 * is not set and for what cannot be.
 */
export async function planProjects(
  app: App,
  declared: readonly ProjectDeclaration[],
  options: { prune: boolean; secretOf: FindSecret },
): Promise<ProjectPlan[]> {
  const names = declared.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw invalid('INVALID_FILE', `The project "${repeated}" is declared twice`);
  requireSecrets(declared, options.secretOf);
  const plans: ProjectPlan[] = [];
  for (const declaration of declared) {
    const project = await findProject(app, declaration.name);
    const { settings, what, loosens } = compareSettings(project, declaration);
    const account = compareMailAccount(app, project, declaration.mail, options.secretOf);
    Object.assign(settings, account.settings);
    const bucket = await planBucket(app, project, declaration.storage?.bucket, options.secretOf);
    // Checked here, so that no earlier project is made before it is refused.
    readProjectChanges({ ...settings, name: declaration.name });
    readMailChanges(app, { _id: project?._id ?? new ObjectId() }, settings);
    const collections = await planCollections(app, project, declaration, options);
    const existing = project ? await listWebhooks(app, project) : [];
    const webhooks = planWebhooks(existing, declaration.webhooks, options);
    const { hooks, ownCode } = await planHooks(app, project, declaration, options);
    await requireNamed(app, project, collections, { webhooks, hooks });
    plans.push({
      name: declaration.name,
      project,
      settings,
      what: [...what, ...account.what, ...(bucket?.what ?? []), ...(ownCode?.what ?? [])],
      loosens,
      bucket,
      providers: await planProviders(app, project, declaration.signIn?.providers, options),
      collections,
      templates: await planTemplates(app, project, declaration.mail?.templates, options),
      webhooks,
      hooks,
      schedules: await planSchedules(app, project, declaration.schedules, options),
      ownCode,
    });
  }
  return plans;
}

/** 400 INVALID_EVENTS for a webhook or hook whose events name a collection that there will not be. */
async function requireNamed(
  app: App,
  project: Project | null,
  collections: readonly SchemaChange[],
  { webhooks, hooks }: { webhooks: readonly WebhookChange[]; hooks: readonly HookChange[] },
): Promise<void> {
  const present = project ? (await listCollections(app, project._id)).map(({ name }) => name) : [USERS];
  const names = new Set(present);
  for (const { action, collection } of collections) {
    if (action === 'drop') names.delete(collection);
    else names.add(collection);
  }
  for (const change of webhooks) {
    if (change.action === 'drop') continue;
    const absent = namedCollections(change.to.events).find((name) => !names.has(name));
    if (absent === undefined) continue;
    const message = `The webhook ${change.to.url} subscribes to "${absent}", but there is no such collection: declare it, or correct its events`;
    throw invalid('INVALID_EVENTS', message);
  }
  for (const { action, event } of hooks) {
    const collection = event.replace(/^after\./, '').split('.')[0]!;
    if (action === 'drop' || names.has(collection)) continue;
    const message = `There is a hook of ${event}, but no collection "${collection}": declare it, or correct the event`;
    throw invalid('INVALID_EVENTS', message);
  }
}

async function planCollections(
  app: App,
  project: Project | null,
  { name, collections, users }: ProjectDeclaration,
  { prune }: { prune: boolean },
): Promise<SchemaChange[]> {
  if (!collections && !users) return [];
  if (users && collections?.some((collection) => collection.name === USERS)) {
    throw invalid('INVALID_FILE', `The project "${name}" declares its users twice: under users and under collections`);
  }
  const existing = project ? await listCollections(app, project._id) : [defaultUsersCollection(new ObjectId())];
  const declared = [...(collections ?? []), ...(users ? [declareUsers(existing, users)] : [])];
  return planSchema(existing, declared, { prune: prune && collections !== undefined });
}

/** Email and password are always there: of them only a public email can be declared. */
function declareUsers(
  existing: readonly Collection[],
  { fields, ...rest }: NonNullable<ProjectDeclaration['users']>,
): CollectionDeclaration {
  if (!fields) return { name: USERS, ...rest };
  const present = existing.find(({ name }) => name === USERS)?.fields ?? [];
  const fixed = present.filter(({ name }) => name === 'email' || name === 'password');
  const repeated = fields.find(
    (field) => field.name === 'password' || (field.name === 'email' && !isDeepStrictEqual(field, PUBLIC_EMAIL)),
  );
  if (repeated) throw invalid('INVALID_FILE', `Users have the field "${repeated.name}" always: it is not declared`);
  const kept = fixed.filter((field) => fields.every(({ name }) => name !== field.name));
  return { name: USERS, ...rest, fields: [...kept, ...fields] };
}

/** Settings that would grant more access, one line each. */
export function listLoosenedSettings(
  project: Project,
  settings: Pick<ProjectDeclaration, 'allowedDomains' | 'storage' | 'signIn'>,
): string[] {
  return compareSettings(project, settings).loosens;
}

function compareSettings(
  project: Project | null,
  { plan, allowedDomains, limits, mail, storage, signIn }: Omit<ProjectDeclaration, 'name' | 'collections'>,
): { settings: AnyProjectChanges; what: string[]; loosens: string[] } {
  const settings: AnyProjectChanges = {};
  const what: string[] = [];
  const loosens: string[] = [];
  const now: Pick<Project, 'plan' | 'allowedDomains' | 'limits'> = project ?? {
    plan: 'free',
    allowedDomains: ['*'],
    limits: {},
  };
  if (plan !== undefined && plan !== now.plan) {
    settings.plan = plan;
    what.push(`plan: ${now.plan} -> ${plan}`);
  }
  const domains = allowedDomains?.map(readDomain);
  if (domains && !isDeepStrictEqual(domains, now.allowedDomains)) {
    settings.allowedDomains = domains;
    what.push(`allowed domains: ${now.allowedDomains.join(', ')} -> ${domains.join(', ')}`);
    const admitted = domains.filter((domain) => !now.allowedDomains.some((other) => other === '*' || other === domain));
    if (admitted.length > 0) loosens.push(`allowed domains: ${admitted.join(', ')}`);
  }
  for (const [name, limit] of Object.entries(limits ?? {})) {
    const present = now.limits[name] ?? null;
    if (present === limit) continue;
    settings.limits = { ...settings.limits, [name]: limit };
    what.push(`limit ${name}: ${present ?? 'of the plan'} -> ${limit ?? 'of the plan'}`);
  }
  const sender = project?.mail?.fromEmail ?? null;
  if (mail?.from !== undefined && mail.from !== sender) {
    settings.providerFromEmail = mail.from;
    what.push(`mail sender: ${sender ?? 'the service’s'} -> ${mail.from ?? 'the service’s'}`);
  }
  const uploads = project?.storage?.publishableUploads ?? false;
  if (storage?.publishableUploads !== undefined && storage.publishableUploads !== uploads) {
    settings.publishableUploads = storage.publishableUploads;
    what.push(`publishable uploads: ${uploads ? 'on' : 'off'} -> ${uploads ? 'off' : 'on'}`);
    if (!uploads) loosens.push('publishable uploads: on');
  }
  for (const { changes, said, isLoosening } of compareSignIn(project ?? {}, signIn ?? {})) {
    settings.signIn = { ...settings.signIn, ...changes };
    what.push(said);
    if (isLoosening) loosens.push(said);
  }
  // In a project that is only being made nothing can be lost.
  return { settings, what, loosens: project ? loosens : [] };
}

type AnyProjectChanges = ProjectChanges & MailSettings;

/**
 * Changes settings of any kind by one write: all or none. 400 for a bad value or nothing to change, 404 when the
 * project is gone, 409 when the name is taken. `verify`: a new mail provider key is first tried with a live call.
 * `prove` may refuse what is known to be right.
 */
export async function changeProject(
  app: App,
  project: Project,
  changes: AnyProjectChanges,
  { verify = false, prove }: { verify?: boolean; prove?: () => Promise<void> } = {},
): Promise<Project> {
  const own = readProjectChanges(changes);
  const mail = readMailChanges(app, project, changes);
  const update = { $set: { ...own.$set, ...mail.$set }, $unset: { ...own.$unset, ...mail.$unset }, tokens: own.tokens };
  requireChange(update);
  await prove?.();
  if (verify && changes.providerApiKey) await verifyMailKey(app, changes.providerApiKey);
  return saveProjectChanges(app, project, update, changes);
}
