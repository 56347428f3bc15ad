import { invalid } from '../../errors.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import { flagParameter, listOf, naming, ok, route, type RouteList, say, wholeList } from '../../http/routes/route.js';
import {
  anyOf,
  arrayOf,
  changes,
  FLAG,
  ID,
  number,
  object,
  oneOf,
  orNull,
  text,
  TEXT,
  type TypeOf,
  WHOLE,
} from '../../platform/schema/schema.js';
import { MAX_DURATION_MS } from '../../config/setting-readers.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { findBoundedLog, presentLog } from '../changes/log-bound.js';
import { addCollection } from '../collections/add-collection.js';
import { changeCollection, type CollectionSettings, withRls } from '../collections/change-collection.js';
import { checkFields } from '../collections/fields/check-fields.js';
import { EXPIRE } from '../collections/fields/expire.js';
import { UNIQUES } from '../collections/fields/unique.js';
import type { CollectionAccess } from '../collections/rules/collection-rules.js';
import { declaredAccess, MAX_DECLARED_INDEXES } from '../collections/schema/collection-declaration.js';
import { ACCESS_WORDS, documentsName, type Collection, type Rls } from '../collections/collection.js';
import { requireStoredCollection, listCollections, presentCollection } from '../collections/collection-store.js';
import {
  ADDED_COLLECTION,
  COLLECTION,
  FIELD_LIST,
  LISTED_COLLECTION,
  MEASURED_COLLECTION,
  withFieldDefs,
} from '../collections/schema/describe-collection.js';
import { dropCollection } from '../collections/drop-collection.js';
import { applyEdit, renameCollection } from '../collections/edit-collection.js';
import { setChanges } from '../changes/set-changes.js';
import { proveOpening, RULE_TEXTS, setRulesRoute } from './rules-route.js';
import { findShape } from '../documents/read/find-shape.js';
import { requireNamed } from './view-as.js';
import { checkStoredDocuments, VALIDATION_REPORT } from '../documents/validation/check-stored-documents.js';

/** As a collection is shown: `{enabled:true,mode,ownerField}` or `{enabled:false}`. */
const RLS = changes({ enabled: FLAG, mode: oneOf('public-read', 'private'), ownerField: TEXT });
const ACCESS = {
  ...oneOf(...ACCESS_WORDS),
  description: 'Access with the publishable key. Default, without `rls` and `rules`: `server-only`.',
};
const MODE = oneOf('enforced', 'flexible');
const INDEXES = arrayOf(TEXT, { maxItems: MAX_DECLARED_INDEXES });
const FIELD_NAMES = arrayOf(TEXT, { maxItems: 1000 });

const SENT_UNIQUES = {
  ...UNIQUES,
  description:
    'Fields that are unique together: [["board", "user"]] or [{"fields": ["staff", "at"], "where": {"status": "booked"}}]. Replaces existing ones.',
};

const SENT_EXPIRE = {
  ...orNull(EXPIRE),
  description:
    'When documents expire: {"field": "expiresAt"} or {"field": "createdAt", "after": "30d", "permanent": true}; null for never.',
};

const CHANGES = withFieldDefs(
  changes({
    fields: { ...FIELD_LIST, description: 'Replaces all fields.' },
    addFields: FIELD_LIST,
    setFields: FIELD_LIST,
    dropFields: FIELD_NAMES,
    mode: MODE,
    indexes: INDEXES,
    uniques: SENT_UNIQUES,
    expire: SENT_EXPIRE,
    access: ACCESS,
    ownerField: TEXT,
    rls: orNull(RLS),
    forNewWrites: { ...FLAG, description: 'Apply new constraints to future writes only.' },
  }),
);

type RlsBody = TypeOf<typeof RLS> | null;
type AccessBody = Pick<TypeOf<typeof CHANGES>, 'access' | 'ownerField' | 'rls'>;

const BAD_SETTINGS = [
  'EMPTY_SCHEMA',
  'VALIDATION_FAILED',
  'INVALID_INDEX',
  'INVALID_UNIQUE',
  'INVALID_EXPIRE',
  'INVALID_RULES',
  'INVALID_RULE',
  'INVALID_REFERENCE',
];

const SHAPE = object({
  looked: { ...WHOLE, description: 'Documents examined.' },
  fields: arrayOf(object({ name: TEXT, types: arrayOf(TEXT), share: number() })),
});

/** Registered collections of a project, for operators (rest-api.md 2.2). */
export const COLLECTION_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/collections',
  tag: 'Project collections',
  rate: 'operator',
  about: 'Which collections a project has: their fields, mode, row-level security and indexes.',
  params: { collection: naming('Name of the collection', 'COLLECTION_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/collections', {
      id: 'listCollections',
      command: 'collection list',
      summary: 'List collections',
      access: PROJECT_OPERATOR,
      query: { sizes: flagParameter('Include documents and bytes of each collection') },
      answers: ok(listOf(LISTED_COLLECTION), 'Collections'),
      errors: { 400: ['INVALID_QUERY'] },
      async handle({ app, project, query: { sizes } }) {
        const collections = await listCollections(app, project._id);
        const items = await Promise.all(
          collections.map(async (collection) => ({
            ...presentCollection(collection),
            ...(sizes && { size: await app.db.measure(documentsName(collection)) }),
          })),
        );
        return wholeList(items);
      },
    }),
    route('GET /api/projects/:projectId/collections/:collection/shape', {
      id: 'getCollectionShape',
      summary: 'Infer fields from a sample of documents',
      access: PROJECT_OPERATOR,
      answers: ok(SHAPE, 'Shape'),
      errors: { 400: ['QUERY_TIMEOUT'], 403: ['USERS_BLOCKED'] },
      async handle({ app, project, params }) {
        return findShape(app, await requireNamed(app, project, params.collection));
      },
    }),
    route('POST /api/projects/:projectId/collections', {
      id: 'addCollection',
      summary: 'Create a collection',
      access: projectOwner('collection add'),
      body: withFieldDefs(
        object({
          name: TEXT,
          'mode?': MODE,
          'fields?': FIELD_LIST,
          'access?': ACCESS,
          'ownerField?': TEXT,
          'rls?': orNull(RLS),
          'rules?': orNull(RULE_TEXTS),
          'indexes?': INDEXES,
          'uniques?': SENT_UNIQUES,
          'expire?': SENT_EXPIRE,
          'ifNotExists?': FLAG,
        }),
      ),
      example: {
        name: 'orders',
        fields: [{ name: 'number', type: 'Number', required: true, unique: true }],
        access: 'private',
      },
      answers: [
        { ...ok(ADDED_COLLECTION, 'Collection registered'), status: 201 },
        ok(ADDED_COLLECTION, 'The collection already exists'),
      ],
      errors: {
        400: [...BAD_SETTINGS, 'INVALID_NAME'],
        403: ['USERS_BLOCKED'],
        409: ['COLLECTION_EXISTS', 'COLLECTION_DROPPING'],
      },
      async handle({ app, project, body: { rls, rules, ...body } }) {
        const given = { rls: readRls(rls ?? null, null), rules: rules ?? null };
        const { collection, created } = await addCollection(app, project, { ...body, ...given });
        const data = { ...presentCollection(collection), created };
        return created ? data : say(data, 'The collection already exists', 200);
      },
    }),
    route('GET /api/projects/:projectId/collections/:collection', {
      id: 'getCollection',
      command: 'collection show',
      summary: 'Get a collection',
      access: PROJECT_OPERATOR,
      answers: ok(MEASURED_COLLECTION, 'Collection'),
      async handle({ app, project, params }) {
        const collections = await listCollections(app, project._id);
        const found =
          collections.find(({ name }) => name === params.collection) ??
          (await requireStoredCollection(app, project._id, params.collection));
        return { ...presentCollection(found), log: presentLog(await findBoundedLog(app, project, found)) };
      },
    }),
    route('PATCH /api/projects/:projectId/collections/:collection', {
      id: 'editCollection',
      summary: 'Update a collection',
      access: projectOwner('collection edit', { looks: 'check', asksPassword: 'to open' }),
      query: { check: flagParameter('Change nothing: only report violations in stored documents') },
      body: CHANGES,
      example: { addFields: [{ name: 'note', type: 'String' }] },
      answers: ok(anyOf(COLLECTION, VALIDATION_REPORT), 'Collection updated'),
      errors: {
        400: [...BAD_SETTINGS, 'USERS_CONTRACT', 'INVALID_QUERY'],
        404: ['FIELD_NOT_FOUND'],
        409: [
          'FIELD_EXISTS',
          'DUPLICATE_VALUE',
          'INDEX_REFUSED',
          'NAMED_BY_RULE',
          'RULE_VIOLATIONS',
          'CONSTRAINT_VIOLATIONS',
        ],
      },
      async handle({ app, ctx, project: { _id }, params, query, body: { forNewWrites = false, ...body } }) {
        if (query.check) {
          const current = await requireStoredCollection(app, _id, params.collection);
          const report = await checkStoredDocuments(
            app,
            { ...current, ...readSettings(current, body) },
            clientSignal(ctx),
          );
          return say(report, `${report.violations} of ${report.checked} stored documents violate the change`);
        }
        const changed = await changeCollection(
          app,
          _id,
          params.collection,
          (current) => proveOpening(app, ctx, current, readSettings(current, body)),
          { forNewWrites },
        );
        return presentCollection(changed);
      },
    }),
    route('PUT /api/projects/:projectId/collections/:collection/rls', {
      id: 'setRls',
      summary: 'Turn row-level security on or off',
      access: projectOwner('collection rls', { asksPassword: ({ enabled }) => enabled === false }),
      body: RLS,
      example: { mode: 'public-read', ownerField: 'userId' },
      answers: ok(COLLECTION, 'Row-level security updated'),
      errors: { 400: ['USERS_CONTRACT', 'INVALID_RULES'] },
      async handle({ app, ctx, project: { _id }, params, body }) {
        const changed = await changeCollection(app, _id, params.collection, (current) =>
          proveOpening(app, ctx, current, withRls(current, readRls(body, current.rls))),
        );
        return presentCollection(changed);
      },
    }),
    setRulesRoute,
    route('PUT /api/projects/:projectId/collections/:collection/changes', {
      id: 'setChanges',
      summary: 'Turn the change log on or off, or set how long it is kept',
      description: 'Turning it off deletes the log. Subscribers start over when it is on again.',
      access: projectOwner('collection edit'),
      body: changes({ on: FLAG, keepMs: { ...WHOLE, minimum: 1000, maximum: MAX_DURATION_MS } }),
      example: { on: true, keepMs: 604_800_000 },
      answers: ok(COLLECTION, 'Changes updated'),
      errors: { 409: ['RULES_NEED_LOG'] },
      async handle({ app, project: { _id }, params, body }) {
        return presentCollection(await setChanges(app, _id, params.collection, body));
      },
    }),
    route('POST /api/projects/:projectId/collections/:collection/rename', {
      id: 'renameCollection',
      summary: 'Rename a collection',
      access: projectOwner('collection edit'),
      body: object({ name: text() }),
      example: { name: 'purchases' },
      answers: ok(COLLECTION, 'Collection renamed'),
      errors: {
        400: ['INVALID_NAME'],
        403: ['USERS_BLOCKED'],
        409: ['COLLECTION_EXISTS', 'NAMED_BY_RULE', 'REFERRED_TO'],
      },
      async handle({ app, project, params, body }) {
        return presentCollection(await renameCollection(app, project._id, params.collection, body.name));
      },
    }),
    route('DELETE /api/projects/:projectId/collections/:collection', {
      id: 'dropCollection',
      summary: 'Delete a collection with all its documents',
      access: projectOwner('collection drop'),
      answers: ok(object({ id: ID, name: TEXT }), 'Collection dropped with all its documents'),
      errors: { 403: ['USERS_BLOCKED'], 409: ['NAMED_BY_RULE', 'REFERRED_TO'] },
      async handle({ app, project, params }) {
        const { _id, name } = await dropCollection(app, project._id, params.collection);
        return { id: _id.toHexString(), name };
      },
    }),
  ],
};

/**
 * The settings that an edit asks for, on top of the stored ones. Refuses what editCollection refuses, and fields given
 * both as a whole and one by one.
 */
function readSettings(
  current: Collection,
  { fields, rls, access, ownerField, ...edit }: Omit<TypeOf<typeof CHANGES>, 'forNewWrites'>,
): Partial<CollectionSettings> {
  const { expire, ...lists } = edit;
  const names = expire !== undefined || Object.values(lists).some((part) => part !== undefined && part.length > 0);
  const isAccess = access !== undefined || ownerField !== undefined || rls !== undefined;
  const mode = edit.mode ?? current.mode;
  if (fields && (edit.addFields ?? edit.setFields ?? edit.dropFields)) {
    throw invalid(
      'INVALID_BODY',
      'Give either fields, which replaces them all, or addFields, setFields and dropFields',
    );
  }
  return {
    ...(fields
      ? {
          mode,
          fields: checkFields(fields, { name: current.name, mode }),
          indexes: edit.indexes ?? current.indexes,
          uniques: edit.uniques ?? current.uniques,
          expire: edit.expire === undefined ? current.expire : edit.expire,
        }
      : (names || !isAccess) && applyEdit(current, edit)),
    ...(isAccess && readAccess(current, { access, ownerField, rls })),
  };
}

function readAccess(current: Collection, { access, ownerField, rls = null }: AccessBody): CollectionAccess {
  const stored = readRls(rls, current.rls);
  if (access === undefined && ownerField === undefined) return withRls(current, stored);
  const {
    rls: kept,
    rules,
    isPublic,
  } = declaredAccess({ name: current.name, access, ownerField, ...(stored && { rls: stored }) }, current);
  return { rls: kept, rules, isPublic };
}

/** The stored form of the setting; what is left out stays as it is, or is public-read by userId. */
function readRls(body: RlsBody, current: Rls | null): Rls | null {
  if (!body || body.enabled === false) return null;
  const mode = body.mode ?? current?.mode;
  if (!mode) throw invalid('INVALID_BODY', 'rls must have a mode: public-read or private');
  return { mode, ownerField: body.ownerField ?? current?.ownerField ?? 'userId' };
}
