import type { SchemaObject } from 'ajv';
import {
  anyOf,
  arrayOf,
  changes,
  claimed,
  FLAG,
  literal,
  mapOf,
  NULL,
  object,
  oneOf,
  orNull,
  type Schema,
  TEXT,
  type TypeOf,
  text,
  WHOLE,
} from '../../platform/schema/schema.js';
import { compileCheck } from '../../platform/schema/check-schema.js';
import {
  DECLARATION_SCHEMA,
  FIELD_DEFS,
  type CollectionDeclaration,
} from '../collections/schema/collection-declaration.js';
import { OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import type { Field } from '../collections/fields/field.js';
import { PLAN_NAMES } from '../projects/project.js';
import { SIGN_IN_FIELDS } from '../projects/sign-in-settings.js';

/** A secret as a file has it: by the name of the environment variable that holds it. */
const SECRET = object({ env: text({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: 200 }) });
export type SecretReference = TypeOf<typeof SECRET>;

/** The value of an environment variable; undefined when it is not set. */
export type FindSecret = (name: string) => string | undefined;

/** The value of a reference. Only of declarations that have passed requireSecrets. */
export function resolveSecret({ env }: SecretReference, secretOf: FindSecret): string {
  return secretOf(env) ?? '';
}

/** Names variables for the secrets of one project, as its exported file refers to them, and notes their values. */
export function nameSecrets(project: string, values: Map<string, string>) {
  return (value: string, ...words: string[]): SecretReference => {
    const plain = [project, ...words]
      .join('_')
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_');
    // A digit begins no name, and what begins with BSVC_ would be taken for a setting.
    const base = /^(\d|BSVC_)/.test(plain) ? `_${plain}` : plain;
    let env = base;
    for (let count = 2; values.has(env); count++) env = `${base}_${count}`;
    values.set(env, value);
    return { env };
  };
}

export const PROJECTS_FORMAT = 'bsvc/1';

/** Limits of a project's own by name; null is the plan's. */
export const LIMITS_SCHEMA: Schema<Record<string, number | null>> = claimed({
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(OVERRIDABLE_LIMITS.map((name) => [name, { type: ['integer', 'null'], minimum: 0 }])),
});

const part = <T>(name: string): Schema<T> => claimed({ $ref: `#/$defs/${name}` });

const SECRET_PART = part<SecretReference>('secret');

/** A webhook, known by its address. `headers` replaces all of them. */
const WEBHOOK = object({
  url: TEXT,
  events: arrayOf(TEXT, { minItems: 1, maxItems: 100 }),
  'description?': TEXT,
  'enabled?': FLAG,
  'headers?': mapOf(SECRET_PART, { maxProperties: 10 }),
});
export type WebhookDeclaration = TypeOf<typeof WEBHOOK>;

/** A hook, known by its event: one of `url` and `run`, whose path begins at the file. */
const HOOK = object({
  event: TEXT,
  'url?': TEXT,
  'run?': TEXT,
  'onFailure?': oneOf('refuse', 'allow'),
  'timeout?': WHOLE,
});
export type HookDeclaration = TypeOf<typeof HOOK>;

/** A schedule, known by its name. */
const SCHEDULE = object({
  name: TEXT,
  cron: TEXT,
  'timeZone?': TEXT,
  'missed?': oneOf('once', 'skip'),
  'url?': TEXT,
  'run?': TEXT,
});
export type ScheduleDeclaration = TypeOf<typeof SCHEDULE>;

const TEMPLATE = object({ name: TEXT, subject: TEXT, 'html?': TEXT, 'text?': TEXT });
export type TemplateDeclaration = TypeOf<typeof TEMPLATE>;

/** A sign-in provider, known by its name. */
const PROVIDER = object({
  name: TEXT,
  'issuer?': TEXT,
  clientId: TEXT,
  clientSecret: SECRET_PART,
  'apple?': object({ teamId: TEXT, keyId: TEXT }),
  'appClientIds?': arrayOf(TEXT, { maxItems: 20 }),
  'scopes?': arrayOf(TEXT, { maxItems: 20 }),
  redirectUrls: arrayOf(TEXT, { minItems: 1, maxItems: 20 }),
  'tokenInAddress?': FLAG,
});
export type ProviderDeclaration = TypeOf<typeof PROVIDER>;

const BUCKET = object({
  bucket: TEXT,
  'endpoint?': orNull(TEXT),
  'region?': TEXT,
  accessKeyId: TEXT,
  secretAccessKey: SECRET_PART,
  'publicUrl?': orNull(TEXT),
  'forcePathStyle?': FLAG,
});
export type BucketDeclaration = TypeOf<typeof BUCKET>;

const { indexes, uniques, changes: keptChanges } = DECLARATION_SCHEMA.properties as Record<string, Schema>;

/** All fields of end users besides `email` and `password`; the rest as of a collection. */
const USERS = changes({
  fields: arrayOf(part<Field>('field'), { maxItems: 1000 }),
  indexes: claimed<NonNullable<CollectionDeclaration['indexes']>>(indexes!),
  uniques: claimed<NonNullable<CollectionDeclaration['uniques']>>(uniques!),
  changes: claimed<NonNullable<CollectionDeclaration['changes']>>(keptChanges!),
});

/** A project as `bsvc.yaml` declares it. Anything left out stays as it is; `collections: []` names none on purpose. */
const PROJECT = object({
  name: TEXT,
  'plan?': oneOf(...PLAN_NAMES),
  'allowedDomains?': arrayOf(TEXT, { minItems: 1, maxItems: 200 }),
  'limits?': LIMITS_SCHEMA,
  'collections?': arrayOf(part<CollectionDeclaration>('collection'), { maxItems: 1000 }),
  'users?': part<TypeOf<typeof USERS>>('users'),
  'webhooks?': arrayOf(part<WebhookDeclaration>('webhook'), { maxItems: 1000 }),
  'hooks?': arrayOf(part<HookDeclaration>('hook'), { maxItems: 400 }),
  'schedules?': arrayOf(part<ScheduleDeclaration>('schedule'), { maxItems: 100 }),
  /** Where the files are that hooks run, and the variables that these see. */
  'ownCode?': object({ 'folder?': TEXT, 'env?': arrayOf(TEXT, { maxItems: 50 }) }),
  /** `from`: default sender, null for the service's. Templates are the project's own, and so is the account's key. */
  'mail?': object({
    'from?': orNull(TEXT),
    'providerKey?': anyOf(SECRET_PART, NULL),
    'webhookSecret?': anyOf(SECRET_PART, NULL),
    'templates?': arrayOf(part<TemplateDeclaration>('template'), { maxItems: 200 }),
  }),
  /** `bucket`: null for the service's own storage. */
  'storage?': object({ 'publishableUploads?': FLAG, 'bucket?': anyOf(part<BucketDeclaration>('bucket'), NULL) }),
  'signIn?': changes({
    ...SIGN_IN_FIELDS,
    providers: arrayOf(part<ProviderDeclaration>('provider'), { maxItems: 50 }),
  }),
});
export type ProjectDeclaration = TypeOf<typeof PROJECT>;

/** The JSON Schema of `bsvc.yaml` after field specs have become fields; checks form, not rules. */
const PROJECTS = object({
  '$schema?': TEXT,
  format: literal(PROJECTS_FORMAT),
  projects: arrayOf(part<ProjectDeclaration>('project'), { maxItems: 200 }),
});
const PARTS = {
  ...FIELD_DEFS,
  collection: DECLARATION_SCHEMA,
  users: USERS,
  secret: SECRET,
  provider: PROVIDER,
  bucket: BUCKET,
  webhook: WEBHOOK,
  hook: HOOK,
  schedule: SCHEDULE,
  template: TEMPLATE,
  project: PROJECT,
};

/** Checks the form of a projects file; 400 names the first place that does not fit. */
export const readProjectsFile = compileCheck<TypeOf<typeof PROJECTS>>({ ...PROJECTS, $defs: PARTS });

/** The JSON Schema for editors: as the file is written, with fields as specs or as objects. */
export function projectsFileSchema(): SchemaObject {
  const fields = { type: 'array', items: { anyOf: [{ $ref: '#/$defs/spec' }, { $ref: '#/$defs/field' }] } };
  const collection = { ...DECLARATION_SCHEMA, properties: { ...(DECLARATION_SCHEMA.properties as object), fields } };
  const users = { ...USERS, properties: { ...(USERS.properties as object), fields } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'bsvc.yaml',
    description: 'Projects to create or update with "bsvc apply".',
    ...PROJECTS,
    $defs: {
      ...PARTS,
      collection,
      users,
      spec: { type: 'string', description: 'name:Type[!][&][=default]', pattern: '^[^\\s:]+:[A-Z]' },
    },
  };
}
