import { useEffect, useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below } from '../../api-paths.js';
import { documentsIn, USERS, type Collection, type CollectionField, type CollectionsPath } from '../../collection.js';
import { titleField } from '../../parts/schema-form/form-place.js';
import type { ShownFields } from '../document-fields.js';

/** Beyond them the address would be too long. */
const MAX_AT_ONCE = 100;

/** Titles of the documents that the shown rows name, by id: one request for each collection that is named. */
export function useRefTitles(
  base: CollectionsPath,
  rows: readonly ShownFields[] | null,
  fields: readonly CollectionField[],
  collections: readonly Collection[],
): ReadonlyMap<string, string> {
  const [titles, setTitles] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    if (!rows) return undefined;
    const ending = new AbortController();
    for (const [name, ids] of idsByCollection(rows, fields)) {
      const target = collections.find((each) => each.name === name && name !== USERS);
      const title = titleField(target);
      const wanted = [...ids].filter((id) => !titles.has(id)).slice(0, MAX_AT_ONCE);
      if (title === null || wanted.length === 0) continue;
      call('GET', below(base, '/{collection}/documents', { collection: name }), {
        query: { _id_in: wanted.join(','), fields: title, limit: MAX_AT_ONCE },
        signal: ending.signal,
      }).then(
        (list) => {
          const found = documentsIn(list).flatMap(({ _id, [title]: text }) =>
            typeof text === 'string' && text !== '' ? [[_id, text] as const] : [],
          );
          setTitles((old) => new Map([...old, ...found]));
        },
        // The ids stay.
        () => undefined,
      );
    }
    return () => ending.abort();
  }, [rows, base, collections]);
  return titles;
}

function idsByCollection(rows: readonly ShownFields[], fields: readonly CollectionField[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { name, ref, items } of fields) {
    const to = ref ?? items?.ref;
    if (to === undefined) continue;
    const ids = found.get(to) ?? new Set<string>();
    for (const row of rows) for (const id of [row[name]].flat()) if (typeof id === 'string') ids.add(id);
    found.set(to, ids);
  }
  return found;
}
