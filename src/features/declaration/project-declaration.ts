import type { SchemaObject } from 'ajv';
import {
  arrayOf,
  claimed,
  FLAG,
  literal,
  object,
  oneOf,
  orNull,
  type Schema,
  TEXT,
  type TypeOf,
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
import { SIGN_IN_CHANGES } from '../projects/sign-in-settings.js';

export const PROJECTS_FORMAT = 'bsvc/1';

/** Limits of a project's own by name; null is the plan's. */
export const LIMITS_SCHEMA: Schema<Record<string, number | null>> = claimed({
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(OVERRIDABLE_LIMITS.map((name) => [name, { type: ['integer', 'null'], minimum: 0 }])),
});

/** A webhook, known by its address. */
const WEBHOOK = object({
  url: TEXT,
  events: arrayOf(TEXT, { minItems: 1, maxItems: 100 }),
  'description?': TEXT,
  'enabled?': FLAG,
});
export type WebhookDeclaration = TypeOf<typeof WEBHOOK>;

const TEMPLATE = object({ name: TEXT, subject: TEXT, 'html?': TEXT, 'text?': TEXT });
export type TemplateDeclaration = TypeOf<typeof TEMPLATE>;

const part = <T>(name: string): Schema<T> => claimed({ $ref: `#/$defs/${name}` });

const USERS = object({ fields: arrayOf(part<Field>('field'), { maxItems: 1000 }) });

/** A project as `bsvc.yaml` declares it. Anything left out stays as it is; `collections: []` names none on purpose. */
const PROJECT = object({
  name: TEXT,
  'plan?': oneOf(...PLAN_NAMES),
  'allowedDomains?': arrayOf(TEXT, { minItems: 1, maxItems: 200 }),
  'limits?': LIMITS_SCHEMA,
  'collections?': arrayOf(part<CollectionDeclaration>('collection'), { maxItems: 1000 }),
  /** All fields of end users besides `email` and `password`. */
  'users?': part<TypeOf<typeof USERS>>('users'),
  'webhooks?': arrayOf(part<WebhookDeclaration>('webhook'), { maxItems: 1000 }),
  /** `from`: default sender, null for the service's. `templates`: the project's own. */
  'mail?': object({
    'from?': orNull(TEXT),
    'templates?': arrayOf(part<TemplateDeclaration>('template'), { maxItems: 200 }),
  }),
  'storage?': object({ 'publishableUploads?': FLAG }),
  'signIn?': SIGN_IN_CHANGES,
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
  webhook: WEBHOOK,
  template: TEMPLATE,
  project: PROJECT,
};

/** Checks the form of a projects file; 400 names the first place that does not fit. */
export const readProjectsFile = compileCheck<TypeOf<typeof PROJECTS>>({ ...PROJECTS, $defs: PARTS });

/** The JSON Schema for editors: as the file is written, with fields as specs or as objects. */
export function projectsFileSchema(): SchemaObject {
  const fields = { type: 'array', items: { anyOf: [{ $ref: '#/$defs/spec' }, { $ref: '#/$defs/field' }] } };
  const collection = { ...DECLARATION_SCHEMA, properties: { ...(DECLARATION_SCHEMA.properties as object), fields } };
  const users = { ...USERS, properties: { fields } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'bsvc.yaml',
    description: 'Projects that "bsvc apply" makes so.',
    ...PROJECTS,
    $defs: {
      ...PARTS,
      collection,
      users,
      spec: { type: 'string', description: 'name:Type[!][&][=default]', pattern: '^[^\\s:]+:[A-Z]' },
    },
  };
}
