import { flagParameter, ok, parameter, route, say, type RouteList } from '../../http/routes/route.js';
import { arrayOf, FLAG, object, oneOf, TEXT } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { requireProven } from '../access/require-operator.js';
import { applyDeclared } from '../changes/set-changes.js';
import { declareCollection, DECLARATION_SCHEMA, SCHEMA_FORMAT } from '../collections/schema/collection-declaration.js';
import { withFieldDefs } from '../collections/schema/describe-collection.js';
import { unconfirmed } from '../collections/change-collection.js';
import { listCollections } from '../collections/collection-store.js';
import { listLoosenedBy, planSchema, presentSchemaChange } from '../collections/schema/plan-schema.js';

const PROJECT_SCHEMA = withFieldDefs(
  object(
    { format: oneOf(SCHEMA_FORMAT), collections: arrayOf(DECLARATION_SCHEMA, { maxItems: 1000 }) },
    'ProjectSchema',
  ),
);
const CHANGE = object(
  {
    action: oneOf('add', 'change', 'drop'),
    kind: oneOf('collection'),
    name: TEXT,
    'what?': arrayOf(TEXT),
    'loosens?': { ...arrayOf(TEXT), description: 'The changes that loosen access or validation.' },
  },
  'SchemaChange',
);

/**
 * All collections of a project as one declaration, for operators: the part of what `bsvc project export` writes and
 * `bsvc apply` takes that the console edits.
 */
export const PROJECT_SCHEMA_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/schema',
  tag: 'Project collections',
  rate: 'operator',
  routes: [
    route('GET /api/projects/:projectId/schema', {
      id: 'exportSchema',
      command: 'project export',
      summary: 'Export collections as a declaration',
      description: 'PUT takes it, for this or another project.',
      access: PROJECT_OPERATOR,
      answers: ok(PROJECT_SCHEMA, 'Schema'),
      async handle({ app, project }) {
        const collections = (await listCollections(app, project._id)).map(declareCollection);
        return { format: SCHEMA_FORMAT, collections };
      },
    }),
    route('PUT /api/projects/:projectId/schema', {
      id: 'applySchema',
      bodySize: 'many',
      summary: 'Apply a declaration of collections',
      description: [
        'What a declaration leaves out stays as it is; `rls: "off"` switches row-level security off. A second time changes nothing.',
        'Values of dropped fields stay stored.',
      ].join(' '),
      access: projectOwner('apply', { looks: 'dryRun', asksPassword: 'to open' }),
      query: {
        dryRun: flagParameter('Change nothing: only return the plan'),
        prune: flagParameter(
          'Delete collections with their documents, fields and indexes that the declaration does not contain',
        ),
        forNewWrites: flagParameter('Apply new constraints to future writes only'),
        confirm: parameter('Name of the project, to confirm looser access or validation, and `prune`', TEXT),
      },
      body: PROJECT_SCHEMA,
      example: {
        format: 'bsvc-schema/1',
        collections: [{ name: 'posts', fields: [{ name: 'title', type: 'String', required: true }] }],
      },
      answers: ok(object({ changes: arrayOf(CHANGE), applied: FLAG }), 'Schema applied'),
      errors: {
        400: [
          'EMPTY_SCHEMA',
          'VALIDATION_FAILED',
          'INVALID_INDEX',
          'INVALID_RULE',
          'INVALID_REFERENCE',
          'INVALID_RULES',
          'INVALID_NAME',
          'INVALID_FILE',
          'USERS_CONTRACT',
          'INVALID_QUERY',
        ],
        403: ['USERS_BLOCKED'],
        409: [
          'DUPLICATE_VALUE',
          'INDEX_REFUSED',
          'COLLECTION_DROPPING',
          'CONFIRMATION_REQUIRED',
          'CHANGED_MEANWHILE',
          'NAMED_BY_RULE',
          'REFERRED_TO',
          'RULE_VIOLATIONS',
          'CONSTRAINT_VIOLATIONS',
        ],
      },
      async handle({ app, ctx, project, query: { dryRun, prune, forNewWrites, confirm }, body: { collections } }) {
        const changes = planSchema(await listCollections(app, project._id), collections, { prune });
        const loosened = listLoosenedBy(changes);
        if (!dryRun && !prune && loosened.length > 0 && confirm !== project.name) throw unconfirmed(loosened);
        if (!dryRun && loosened.length > 0) await requireProven(app, ctx);
        if (!dryRun) await applyDeclared(app, project, changes, { forNewWrites });
        const data = { changes: changes.map(presentSchemaChange), applied: !dryRun };
        if (changes.length === 0) return say(data, 'Nothing to change');
        return dryRun ? say(data, 'Nothing was changed') : data;
      },
    }),
  ],
};
