import type { SchemaObject } from 'ajv';
import type { Schema } from '../../platform/schema/schema.js';
import { compileCheck } from '../../platform/schema/check-schema.js';
import {
  DECLARATION_SCHEMA,
  FIELD_DEFS,
  type CollectionDeclaration,
} from '../collections/schema/collection-declaration.js';
import { OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import type { Field } from '../collections/fields/field.js';
import type { MailText } from '../mail/render-template.js';
import { PLAN_NAMES, type PlanName } from '../projects/project.js';

export const PROJECTS_FORMAT = 'bsvc/1';

/** A project as `bsvc.yaml` declares it. Anything left out stays as it is; `collections: []` names none on purpose. */
export interface ProjectDeclaration {
  name: string;
  plan?: PlanName;
  allowedDomains?: string[];
  /** null: the plan's own limit. */
  limits?: Record<string, number | null>;
  collections?: CollectionDeclaration[];
  /** All fields of end users besides `email` and `password`. */
  users?: { fields: Field[] };
  webhooks?: WebhookDeclaration[];
  /** `from`: default sender, null for the service's. `templates`: the project's own. */
  mail?: { from?: string | null; templates?: TemplateDeclaration[] };
  storage?: { publishableUploads?: boolean };
}

/** A webhook, known by its address. */
export interface WebhookDeclaration {
  url: string;
  events: string[];
  description?: string;
  enabled?: boolean;
}

export interface TemplateDeclaration extends MailText {
  name: string;
}

export interface ProjectsFile {
  format: typeof PROJECTS_FORMAT;
  projects: ProjectDeclaration[];
}

/** Limits of a project's own by name; null is the plan's. */
export const LIMITS_SCHEMA: Schema<Record<string, number | null>> = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(OVERRIDABLE_LIMITS.map((name) => [name, { type: ['integer', 'null'], minimum: 0 }])),
};

const WEBHOOK_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['url', 'events'],
  additionalProperties: false,
  properties: {
    url: { type: 'string' },
    events: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 100 },
    description: { type: 'string' },
    enabled: { type: 'boolean' },
  },
};

const TEMPLATE_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name', 'subject'],
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    subject: { type: 'string' },
    html: { type: 'string' },
    text: { type: 'string' },
  },
};

const MAIL_SCHEMA: SchemaObject = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: { type: ['string', 'null'] },
    templates: { type: 'array', items: { $ref: '#/$defs/template' }, maxItems: 200 },
  },
};

const PROJECT_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    plan: { enum: PLAN_NAMES },
    allowedDomains: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 200 },
    limits: LIMITS_SCHEMA,
    collections: { type: 'array', items: { $ref: '#/$defs/collection' }, maxItems: 1000 },
    users: { $ref: '#/$defs/users' },
    webhooks: { type: 'array', items: { $ref: '#/$defs/webhook' }, maxItems: 1000 },
    mail: MAIL_SCHEMA,
    storage: {
      type: 'object',
      additionalProperties: false,
      properties: { publishableUploads: { type: 'boolean' } },
    },
  },
};

const USERS_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['fields'],
  additionalProperties: false,
  properties: { fields: { type: 'array', items: { $ref: '#/$defs/field' }, maxItems: 1000 } },
};

/** The JSON Schema of `bsvc.yaml` after field specs have become fields; checks form, not rules. */
const PROJECTS_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['format', 'projects'],
  additionalProperties: false,
  properties: {
    $schema: { type: 'string' },
    format: { const: PROJECTS_FORMAT },
    projects: { type: 'array', items: { $ref: '#/$defs/project' }, maxItems: 200 },
  },
  $defs: {
    ...FIELD_DEFS,
    collection: DECLARATION_SCHEMA,
    users: USERS_SCHEMA,
    webhook: WEBHOOK_SCHEMA,
    template: TEMPLATE_SCHEMA,
    project: PROJECT_SCHEMA,
  },
};

/** Checks the form of a projects file; 400 names the first place that does not fit. */
export const readProjectsFile = compileCheck<ProjectsFile>(PROJECTS_SCHEMA);

/** The JSON Schema for editors: as the file is written, with fields as specs or as objects. */
export function projectsFileSchema(): SchemaObject {
  const fields = { type: 'array', items: { anyOf: [{ $ref: '#/$defs/spec' }, { $ref: '#/$defs/field' }] } };
  const collection = { ...DECLARATION_SCHEMA, properties: { ...(DECLARATION_SCHEMA.properties as object), fields } };
  const users = { ...USERS_SCHEMA, properties: { fields } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'bsvc.yaml',
    description: 'Projects that "bsvc apply" makes so.',
    ...PROJECTS_SCHEMA,
    $defs: {
      ...(PROJECTS_SCHEMA.$defs as object),
      collection,
      users,
      spec: { type: 'string', description: 'name:Type[!][&][=default]', pattern: '^[^\\s:]+:[A-Z]' },
    },
  };
}
