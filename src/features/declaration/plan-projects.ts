import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Collection } from '../collections/collection.js';
import type { CollectionDeclaration } from '../collections/schema/collection-declaration.js';
import { listCollections } from '../collections/collection-store.js';
import { planSchema, type SchemaChange } from '../collections/schema/plan-schema.js';
import { defaultUsersCollection, PUBLIC_EMAIL, USERS } from '../collections/users-collection.js';
import { readMailChanges, type MailSettings, verifyMailKey } from '../mail/project-mail.js';
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
import { HOOK_KIND, PROVIDER_KIND, SCHEDULE_KIND, TEMPLATE_KIND, WEBHOOK_KIND } from './item-kinds.js';
import { planItems, type ItemChange } from './plan-items.js';
import type { ProjectDeclaration, FindSecret, SecretReference } from './project-declaration.js';
import {
  compareMailAccount,
  planBucket,
  planOwnCode,
  type BucketChange,
  type OwnCodeChange,
} from './plan-single-parts.js';
import { ObjectId } from 'bson';

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
  collections: SchemaChange[];
  /** Everything else that the declaration lists. */
  items: ItemChange[];
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
    const { signIn, mail, webhooks, hooks, schedules } = declaration;
    const context = { app, project, ...options };
    const items = [
      ...(await planItems(PROVIDER_KIND, signIn?.providers, context)),
      ...(await planItems(TEMPLATE_KIND, mail?.templates, context)),
      ...(await planItems(WEBHOOK_KIND, webhooks, context)),
      ...(await planItems(HOOK_KIND, hooks, context)),
      ...(await planItems(SCHEDULE_KIND, schedules, context)),
    ];
    const ownCode = planOwnCode(app, project, declaration);
    await requireNamed(app, project, collections, items);
    plans.push({
      name: declaration.name,
      project,
      settings,
      what: [...what, ...account.what, ...(bucket?.what ?? []), ...(ownCode?.what ?? [])],
      loosens,
      bucket,
      collections,
      items,
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
  items: readonly ItemChange[],
): Promise<void> {
  const present = project ? (await listCollections(app, project._id)).map(({ name }) => name) : [USERS];
  const names = new Set(present);
  for (const { action, collection } of collections) {
    if (action === 'drop') names.delete(collection);
    else names.add(collection);
  }
  for (const { kind, name, collections: named = [] } of items) {
    const absent = named.find((collection) => !names.has(collection));
    if (absent === undefined) continue;
    const message =
      kind === 'hook'
        ? `There is a hook of ${name}, but no collection "${absent}": declare it, or correct the event`
        : `The webhook ${name} subscribes to "${absent}", but there is no such collection: declare it, or correct its events`;
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
