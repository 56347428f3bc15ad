import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { readFlag } from '../../http/read-flag.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { addCollection, type NewCollection } from '../collections/add-collection.js';
import { changeCollection, type CollectionSettings } from '../collections/change-collection.js';
import { checkFields } from '../collections/check-fields.js';
import { DECLARATION_SCHEMA, FIELD_DEFS } from '../collections/collection-declaration.js';
import type { Collection, CollectionMode, Rls, RlsMode } from '../collections/collection.js';
import { requireStoredCollection } from '../collections/collection-store.js';
import { dropCollection } from '../collections/drop-collection.js';
import { applyEdit } from '../collections/edit-collection.js';
import type { Field } from '../collections/field.js';
import { listCollections } from '../collections/list-collections.js';
import { presentCollection } from '../collections/present-collection.js';
import { renameCollection } from '../collections/rename-collection.js';
import { setRls } from '../collections/set-rls.js';
import { checkStoredDocuments } from '../documents/check-stored-documents.js';

const PREFIX = '/api/projects/:projectId/collections';

/** As a collection is shown: `{enabled:true,mode,ownerField}` or `{enabled:false}`; null = disabled too. */
type RlsBody = { enabled?: boolean; mode?: RlsMode; ownerField?: string } | null;

const RLS_SCHEMA = {
  type: ['object', 'null'],
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean' },
    mode: { enum: ['public-read', 'private'] },
    ownerField: { type: 'string' },
  },
};
const FIELDS = { type: 'array', items: { $ref: '#/$defs/field' }, maxItems: 1000 };
const { name: NAME, mode: MODE, indexes: INDEXES } = DECLARATION_SCHEMA.properties as Record<string, object>;

export const readNewCollection = compileReader<Omit<NewCollection, 'rls'> & { rls?: RlsBody }>({
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: NAME,
    mode: MODE,
    fields: FIELDS,
    rls: RLS_SCHEMA,
    indexes: INDEXES,
    ifNotExists: { type: 'boolean' },
  },
  $defs: FIELD_DEFS,
});

interface EditBody {
  /** Replaces all fields. */
  fields?: Field[];
  addFields?: Field[];
  setFields?: Field[];
  dropFields?: string[];
  mode?: CollectionMode;
  indexes?: string[];
  rls?: RlsBody;
}

export const readEdit = compileReader<EditBody>({
  type: 'object',
  minProperties: 1,
  additionalProperties: false,
  properties: {
    fields: FIELDS,
    addFields: FIELDS,
    setFields: FIELDS,
    dropFields: { type: 'array', items: { type: 'string' }, maxItems: 1000 },
    mode: MODE,
    indexes: INDEXES,
    rls: RLS_SCHEMA,
  },
  $defs: FIELD_DEFS,
});

export const readRlsBody = compileReader<Exclude<RlsBody, null>>({ ...RLS_SCHEMA, type: 'object', minProperties: 1 });

export const readNewName = compileReader<{ name: string }>({
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: { name: { type: 'string' } },
});

/** Registered collections of a project, for operators (rest-api.md 2.2). */
export function collectionRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const operator = requireOperator(app);
  const owner = (action: string) => requireOwner(app, action);

  router.get('/', operator, async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const items = (await listCollections(app, _id)).map(presentCollection);
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Collections' };
  });

  router.post('/', owner('collection add'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { rls, ...body } = readNewCollection(ctx.request.body);
    const { collection, created } = await addCollection(app, project, { ...body, rls: readRls(rls ?? null, null) });
    ctx.status = created ? 201 : 200;
    ctx.body = {
      success: true,
      data: { ...presentCollection(collection), created },
      message: created ? 'Collection registered' : 'The collection was there already',
    };
  });

  router.get('/:collection', operator, async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const collections = await listCollections(app, _id);
    const found = collections.find(({ name }) => name === ctx.params.collection);
    const collection = found ?? (await requireStoredCollection(app, _id, ctx.params.collection!));
    ctx.body = { success: true, data: presentCollection(collection), message: 'Collection' };
  });

  router.patch('/:collection', requireOwner(app, 'collection edit', { looks: 'check' }), async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const body = readEdit(ctx.request.body);
    if (readFlag(ctx.query, 'check', false)) {
      const current = await requireStoredCollection(app, _id, ctx.params.collection!);
      const report = await checkStoredDocuments(app, { ...current, ...readSettings(current, body) }, whenGone(ctx.res));
      ctx.body = { success: true, data: report, message: `${report.misfits} of ${report.checked} would not fit` };
      return;
    }
    const changed = await changeCollection(app, _id, ctx.params.collection!, (current) => readSettings(current, body));
    ctx.body = { success: true, data: presentCollection(changed), message: 'Collection updated' };
  });

  router.put('/:collection/rls', owner('collection rls'), async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const body = readRlsBody(ctx.request.body);
    const current = await requireStoredCollection(app, _id, ctx.params.collection!);
    const changed = await setRls(app, _id, current.name, readRls(body, current.rls));
    ctx.body = { success: true, data: presentCollection(changed), message: 'Row-level security updated' };
  });

  router.post('/:collection/rename', owner('collection rename'), async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const { name } = readNewName(ctx.request.body);
    const renamed = await renameCollection(app, _id, ctx.params.collection!, name);
    ctx.body = { success: true, data: presentCollection(renamed), message: 'Collection renamed' };
  });

  router.delete('/:collection', owner('collection drop'), async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const dropped = await dropCollection(app, _id, ctx.params.collection!);
    ctx.body = {
      success: true,
      data: { id: dropped._id.toHexString(), name: dropped.name },
      message: 'Collection dropped with all its documents',
    };
  });

  return { prefix: PREFIX, router };
}

/** What an edit asks for, on top of what is stored. Refuses what editCollection refuses, and fields given both as a whole and one by one. */
function readSettings(current: Collection, { fields, rls, ...edit }: EditBody): Partial<CollectionSettings> {
  const names = Object.values(edit).some((part) => part !== undefined && part.length > 0);
  const mode = edit.mode ?? current.mode;
  if (fields && (edit.addFields ?? edit.setFields ?? edit.dropFields))
    throw invalid(
      'INVALID_BODY',
      'Give either fields, which replaces them all, or addFields, setFields and dropFields',
    );
  return {
    ...(fields
      ? { mode, fields: checkFields(fields, { name: current.name, mode }), indexes: edit.indexes ?? current.indexes }
      : (names || rls === undefined) && applyEdit(current, edit)),
    ...(rls !== undefined && { rls: readRls(rls, current.rls) }),
  };
}

/** The stored form of the setting; what is left out stays as it is, or is public-read by userId. */
function readRls(body: RlsBody, current: Rls | null): Rls | null {
  if (!body || body.enabled === false) return null;
  const mode = body.mode ?? current?.mode;
  if (!mode) throw invalid('INVALID_BODY', 'rls must have a mode: public-read or private');
  return { mode, ownerField: body.ownerField ?? current?.ownerField ?? 'userId' };
}

/** Aborts when nobody waits for the answer any more. */
function whenGone(response: { once(event: 'close', listener: () => void): unknown }): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort(invalid('CLIENT_GONE', 'Nobody waits for the answer any more')));
  return controller.signal;
}
