import { inOrder, pathOf } from './document-order.js';
import { tellListener, warn } from './platform.js';
import type { FollowEvent } from './stream.js';

/** More slow a page down, and are rarely looked at. */
const MANY = 5000;

/** Keeps the documents that a follower is told of, and shows them whenever there is nothing more to hear at once. */
export function keepSet(
  sort: readonly string[],
  show: (documents: never[]) => void,
): { keep: (event: FollowEvent<never>) => void; clear: () => void } {
  const documents = new Map<string, object>();
  let isShown = false;
  return {
    keep(event) {
      if (event.type === 'upsert') documents.set(event.id, event.document);
      if (event.type === 'gone') documents.delete(event.id);
      if (event.type === 'reset') documents.clear();
      if (event.type !== 'ready') return;
      isShown = documents.size > 0;
      if (documents.size > MANY) warn('follow.set: set limit', documents.size);
      show(inOrder([...documents.values()], sort) as never[]);
    },
    clear() {
      if (isShown) tellListener(show, []);
      isShown = false;
    },
  };
}

/** What is sorted by has to be known: these fields are asked for too. */
export function withSorted<T extends { fields?: readonly string[] }>(options: T, sort: readonly string[]): T {
  const { fields } = options;
  if (!fields) return options;
  const missing = sort.map(pathOf).filter((path) => !fields.some((name) => `${path}.`.startsWith(`${name}.`)));
  return { ...options, fields: [...fields, ...missing] };
}
