import type { FollowEvent } from './stream.js';

type Kept = { _id: string } & Record<string, unknown>;

/** Keeps the documents that a follower is told of, and shows them whenever there is nothing more to hear at once. */
export function keepSet(
  sort: string | readonly string[],
  show: (documents: never[]) => void,
): (event: FollowEvent<never>) => void {
  const documents = new Map<string, Kept>();
  const compare = comparing(typeof sort === 'string' ? [sort] : sort);
  return (event) => {
    if (event.type === 'upsert') documents.set(event.id, event.document);
    else if (event.type === 'gone') documents.delete(event.id);
    else if (event.type === 'reset') documents.clear();
    else if (event.type === 'ready') show([...documents.values()].sort(compare) as never[]);
  };
}

/** As the service sorts: fields one after the other, then the id in the direction of the last of them. */
function comparing(sort: readonly string[]): (a: Kept, b: Kept) => number {
  const fields = sort.map((name) => ({ path: name.replace(/^-/, ''), sign: name.startsWith('-') ? -1 : 1 }));
  const all = [...fields, { path: '_id', sign: fields.at(-1)?.sign ?? 1 }];
  return (a, b) => {
    for (const { path, sign } of all) {
      const order = compareValues(valueAt(a, path), valueAt(b, path));
      if (order !== 0) return order * sign;
    }
    return 0;
  };
}

const valueAt = (document: unknown, path: string): unknown =>
  path.split('.').reduce((value, part) => (value as Record<string, unknown> | undefined)?.[part], document);

/** Compares two values; a missing one comes first. */
function compareValues(a: unknown, b: unknown): number {
  if (a === b) return 0;
  if (a === undefined || b === undefined) return a === undefined ? -1 : 1;
  return (a as string) < (b as string) ? -1 : (a as string) > (b as string) ? 1 : 0;
}
