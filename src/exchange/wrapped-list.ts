/** What the documents of a file are imported as. */
export interface WantedList {
  /** Name of the collection there, under which other programs put the list. */
  name: string;
  /** Names of declared fields: what is a field is no list of documents. */
  fields: ReadonlySet<string>;
}

/** Names under which programs put a list of documents, whatever its collection is called. */
const LIST_NAMES: ReadonlySet<string> = new Set(['documents', 'results', 'items', 'data', 'records', 'rows', 'users']);

/** Names that programs put beside such a list. */
const ENVELOPE: ReadonlySet<string> = new Set([
  ...['success', 'message', 'status', 'kind', 'version', 'format', 'schemaVersion', 'schema_version'],
  ...['exportedAt', 'exported_at', 'project', 'collection', 'metadata', 'meta', 'count', 'total', 'limit', 'offset'],
  ...['page', 'perPage', 'totalItems', 'totalPages', 'next', 'previous', 'cursor', 'nextCursor', 'hasMore'],
  ...['nextPageToken', 'pageInfo'],
]);

/** An object around a list: the path to the list, and the names of other lists beside it. */
export interface Wrapped {
  path: string[];
  others: { name: string; count: number }[];
}

/**
 * Whether the first object of a file is a document (null) or an object around the list of documents. Throws for one
 * that holds documents in another form, since it would be stored as one document.
 */
export function findWrapped(value: Readonly<Record<string, unknown>>, wanted: WantedList): Wrapped | null {
  return findIn(value, wanted, []);
}

function findIn(value: Readonly<Record<string, unknown>>, wanted: WantedList, above: string[]): Wrapped | null {
  const members = Object.entries(value);
  const lists = members.filter(([name, each]) => isList(each) && !wanted.fields.has(name));
  const isForeign = ([name]: [string, unknown]): boolean => !ENVELOPE.has(name);
  const rest = members.filter(([name]) => !lists.some(([list]) => list === name));
  const own = lists.find(([name]) => name === wanted.name) ?? lists.find(([name]) => LIST_NAMES.has(name));
  if (own && !rest.some(isForeign)) {
    const others = lists.filter((each) => each !== own && isForeign(each));
    return {
      path: [...above, own[0]],
      others: others.map(([name, list]) => ({ name, count: (list as unknown[]).length })),
    };
  }
  // As in an answer of an API: the list is one level further down.
  const inner = above.length === 0 && !wanted.fields.has('data') ? value['data'] : undefined;
  if (isObject(inner) && members.every(([name]) => name === 'data' || ENVELOPE.has(name))) {
    const found = findIn(inner, wanted, ['data']);
    if (found) return found;
  }
  const keyed = members.find(([name]) => name === '__collections__' || name === wanted.name);
  if (
    keyed &&
    isObject(keyed[1]) &&
    !wanted.fields.has(keyed[0]) &&
    !rest.some((each) => each !== keyed && isForeign(each))
  ) {
    throw new Error(`"${keyed[0]}" holds documents by their ids, not a list: make a list of them first`);
  }
  if (lists.length > 0 && !rest.some(isForeign) && lists.every(([, list]) => (list as unknown[]).every(isObject))) {
    const names = lists.map(([name]) => `"${name}"`).join(', ');
    throw new Error(
      `an object around ${names}, not a document: name the collection there with --source, or put a single document into [ ]`,
    );
  }
  return null;
}

/** What can stand for documents: objects alone. An empty list can stand for anything. */
const isList = (value: unknown): boolean => Array.isArray(value) && value.every(isObject);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a list of this path holds the documents of an object that is too large to be a document. */
export function isWrappedList(path: readonly string[], wanted: WantedList): boolean {
  const name = path.at(-1)!;
  return (
    path.length <= 2 && (name === wanted.name || LIST_NAMES.has(name)) && (path.length === 1 || path[0] === 'data')
  );
}
