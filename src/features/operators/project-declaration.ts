import type { SchemaObject } from 'ajv';
import { compileReader } from '../../platform/json-schema.js';
import { DECLARATION_SCHEMA, FIELD_DEFS, type CollectionDeclaration } from '../collections/collection-declaration.js';
import { OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import type { PlanName } from '../projects/project.js';

export const PROJECTS_FORMAT = 'bsvc/1';

/** A project as `bsvc.yaml` declares it. What is left out is left as it is; `collections: []` names none on purpose. */
export interface ProjectDeclaration {
  name: string;
  plan?: PlanName;
  allowedDomains?: string[];
  /** null: the plan's own limit. */
  limits?: Record<string, number | null>;
  collections?: CollectionDeclaration[];
}

export interface ProjectsFile {
  format: typeof PROJECTS_FORMAT;
  projects: ProjectDeclaration[];
}

const PROJECT_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    plan: { enum: ['free', 'pro'] },
    allowedDomains: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 200 },
    limits: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(
        OVERRIDABLE_LIMITS.map((name) => [name, { type: ['integer', 'null'], minimum: 0 }]),
      ),
    },
    collections: { type: 'array', items: { $ref: '#/$defs/collection' }, maxItems: 1000 },
  },
};

/** The JSON Schema of `bsvc.yaml` after field specs have become fields; checks form, not rules. */
const PROJECTS_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['format', 'projects'],
  additionalProperties: false,
  properties: {
    format: { const: PROJECTS_FORMAT },
    projects: { type: 'array', items: { $ref: '#/$defs/project' }, maxItems: 200 },
  },
  $defs: { ...FIELD_DEFS, collection: DECLARATION_SCHEMA, project: PROJECT_SCHEMA },
};

/** Checks the form of a projects file; 400 names the first place that does not fit. */
export const readProjectsFile = compileReader<ProjectsFile>(PROJECTS_SCHEMA);

/** The JSON Schema for editors: as the file is written, with fields as specs or as objects. */
export function projectsFileSchema(): SchemaObject {
  const fields = { type: 'array', items: { anyOf: [{ $ref: '#/$defs/spec' }, { $ref: '#/$defs/field' }] } };
  const collection = { ...DECLARATION_SCHEMA, properties: { ...(DECLARATION_SCHEMA.properties as object), fields } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'bsvc.yaml',
    description: 'Projects that "bsvc apply" makes so.',
    ...PROJECTS_SCHEMA,
    $defs: {
      ...(PROJECTS_SCHEMA.$defs as object),
      collection,
      spec: { type: 'string', description: 'name:Type[!][&][=default]', pattern: '^[^\\s:]+:[A-Z]' },
    },
  };
}
