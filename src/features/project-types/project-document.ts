import type { Access, Answer, Parameters, Route, RouteList } from '../../http/routes/route.js';
import { ownTurn } from '../../scheduler.js';
import { claimed, type JsonSchema } from '../../platform/schema/schema.js';
import { VERSION } from '../../package.js';
import { openApiDocument, type ApiDocument } from '../reference/api-document.js';
import { collectionSchemas, type CollectionSchemas, type Populate } from './collection-schemas.js';
import type { DescribedCollection, DescribedProject } from './described-project.js';

/** Who comes in by one of these calls what the project's own document describes. */
const KEYS: ReadonlySet<string> = new Set(['publishableKey', 'secretKey', 'publishableKeyInQuery']);
/** Before the name of a collection. */
export const COLLECTION_TAG = 'Collection ';
const DATA_PREFIX = '/api/data/:collectionName';

/**
 * The OpenAPI 3.1 document of one project: what applications call with its keys, each operation on documents once for
 * every collection, with the collection's own schemas. Made of the routes themselves.
 */
export async function buildProjectDocument(
  lists: readonly RouteList[],
  project: DescribedProject,
  base = '',
): Promise<ApiDocument> {
  const { document, add } = openApiDocument({ title: project.name, version: VERSION }, base);
  const byName = new Map(project.collections.map((collection) => [collection.name, collection]));
  const populate: Populate = (name) => {
    const target = byName.get(name);
    return target ? { $ref: `#/components/schemas/${target.typeName}${target.isUsers ? 'Public' : 'Shown'}` } : null;
  };
  const general = lists.map(forKeys).filter(({ routes }) => routes.length > 0);
  const ofCollections = general.flatMap(({ routes, params }) =>
    routes
      .filter(({ path }) => isOfCollection(path))
      .map((route) => ({ ...route, params: { ...params, ...route.params } })),
  );
  const users = project.collections.find(({ isUsers }) => isUsers)!;
  const userSchemas = collectionSchemas(users, populate);
  for (const collection of project.collections) {
    if (collection.isUsers) continue;
    add(specialise(ofCollections, collection, collectionSchemas(collection, populate)));
    await ownTurn();
  }
  const told = new Set<string>();
  for (const { tag, tags, about, rate, params, routes } of general) {
    const others = routes.filter(({ path }) => !isOfCollection(path));
    const isFirst = !told.has(tag) && others.length > 0;
    if (others.length === 0) continue;
    told.add(tag);
    const words = about ?? general.find((list) => list.tag === tag && list.about !== undefined)?.about;
    add({
      prefix: '/api',
      tag,
      rate,
      ...(isFirst && words !== undefined && { about: words }),
      ...(params && { params }),
      ...(tags && { tags }),
      routes: others.map((route) => substituteRoute(route, userReplacements(users, userSchemas), users.typeName)),
    });
    await ownTurn();
  }
  // Populated references name it whether or not an operation does.
  document.components.schemas = Object.fromEntries(
    Object.entries(document.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  return document;
}

const isOfCollection = (path: string): boolean => path === DATA_PREFIX || path.startsWith(`${DATA_PREFIX}/`);

/** The routes of a list that a key of the project opens. */
function forKeys(list: RouteList): RouteList {
  return { ...list, routes: list.routes.filter(({ access }) => opensByKey(access)) };
}

function opensByKey({ security }: Access): boolean {
  return security.some((together) => together.some(({ name }) => KEYS.has(name)));
}

/** Schemas by the title that they take the place of. */
type Replacements = Readonly<Record<string, JsonSchema>>;

/** The operations on documents for one collection. */
function specialise(
  routes: readonly Route[],
  { name, typeName, isFlexible }: DescribedCollection,
  schemas: CollectionSchemas,
): RouteList {
  const replacements: Replacements = {
    Document: schemas.Document,
    ShownDocument: schemas.Shown,
    NewDocument: schemas.Insert,
    DocumentChanges: schemas.Update,
  };
  return {
    prefix: '/api/data',
    tag: COLLECTION_TAG + name,
    rate: 'plain',
    about: `Documents of \`${name}\`, ${isFlexible ? 'which take any field' : 'of the declared fields alone'}.`,
    routes: routes.map((route) => {
      const { collectionName: _named, ...params } = route.params ?? {};
      const { example: _example, ...typed } = substituteRoute(route, replacements, typeName);
      return {
        ...typed,
        path: route.path.replace(':collectionName', name),
        id: nameOperation(route.id, typeName),
        summary: `${route.summary} (${name})`,
        params,
        // Examples are of some collection, and this one has other fields.
        ...(isFlexible && route.example !== undefined && { example: route.example }),
        ...(typed.ownQuery && { ownQuery: withFilter(typed.ownQuery, schemas.Filter) }),
      };
    }),
  };
}

/** `listDocuments` of `posts` is `listPostsDocuments`. */
function nameOperation(id: string, typeName: string): string {
  return id.replace(/[A-Z][a-z]*$/, (last) => typeName + last);
}

function withFilter(query: Parameters, filter: JsonSchema): Parameters {
  return Object.fromEntries(
    Object.entries(query).map(([name, each]) => [name, each.isOpen ? { ...each, schema: claimed(filter) } : each]),
  );
}

function userReplacements({ typeName }: DescribedCollection, schemas: CollectionSchemas): Replacements {
  const { properties, ...update } = schemas.Update as JsonSchema & { properties: Record<string, JsonSchema> };
  return {
    User: schemas.Document,
    NewUser: schemas.Insert,
    PublicUser: schemas.Public!,
    ProfileChanges: {
      ...update,
      title: `${typeName}Update`,
      properties: {
        ...properties,
        currentPassword: {
          type: 'string',
          description: 'Required to change the address of an account with a password.',
        },
      },
    },
  };
}

function substituteRoute(route: Route, replacements: Replacements, typeName: string): Route {
  const put = <S extends JsonSchema | undefined>(schema: S): S => substitute(schema, replacements, typeName) as S;
  const answer = (each: Answer): Answer => ({
    ...each,
    ...(each.content && {
      content: Object.fromEntries(Object.entries(each.content).map(([type, schema]) => [type, put(schema)])),
    }),
  });
  const { answers } = route;
  return {
    ...route,
    ...(route.body && { body: put(route.body) }),
    ...(route.openBody && { openBody: put(route.openBody) }),
    answers: Array.isArray(answers) ? (answers as readonly Answer[]).map(answer) : answer(answers as Answer),
  };
}

/**
 * The schema with titled parts replaced; what contains one and has a title itself gets the collection's name in front.
 */
function substitute(value: unknown, replacements: Replacements, typeName: string): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => substitute(item, replacements, typeName));
    return items.some((item, at) => item !== value[at]) ? items : value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const { title } = value as JsonSchema;
  if (typeof title === 'string' && Object.hasOwn(replacements, title)) return replacements[title];
  const parts = Object.entries(value).map(([name, part]) => [name, substitute(part, replacements, typeName)] as const);
  if (parts.every(([name, part]) => part === (value as Record<string, unknown>)[name])) return value;
  return { ...Object.fromEntries(parts), ...(typeof title === 'string' && { title: typeName + title }) };
}
