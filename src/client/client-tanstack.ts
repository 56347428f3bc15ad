import type { CollectionConfig, PendingMutation, SyncConfig } from '@tanstack/db';
import type { Client } from './client.js';
import type { CollectionName, FilterOf, Part, UntypedProject } from './project.js';

export { newId } from './new-id.js';

/** A document as a collection of TanStack DB has it: what the service adds is missing until it has answered. */
export type Row<P, N> = Part<P, N, 'Insert'> & Partial<Part<P, N, 'Document'>> & { _id: string };

/** Which documents a collection of TanStack DB has. */
export interface BsvcCollectionOptions<P, N extends CollectionName<P>> {
  client: Client<P>;
  /** The collection of the project. */
  name: N;
  /** Only documents that match; those that are inserted have to, too. */
  filter?: FilterOf<P, N>;
}

type Doc = Row<UntypedProject, string>;
/** A document as it is now, or null when it is gone. */
type Change = { id: string; document: Doc | null };

/**
 * Options for `createCollection` of TanStack DB: the collection follows the documents that match. What is changed in it
 * is stored, the mutations of a transaction all or none, and taken back when the service refuses it. Of an update the
 * changed fields are sent: the last one to change a field wins.
 */
export function bsvcCollectionOptions<P, N extends CollectionName<P>>({
  client,
  name,
  filter,
}: BsvcCollectionOptions<P, N>): CollectionConfig<Row<P, N>, string> {
  // One implementation stands for the collections of every project's types.
  const untyped = client as unknown as Client<UntypedProject>;
  const at: string = name;
  let answer: ((results: readonly Change[]) => void) | undefined;

  const sync: SyncConfig<Doc, string>['sync'] = ({ begin, write, commit, truncate, markReady, markError }) => {
    const versions = new Map<string, string>();
    const shown = new Set<string>();
    const gone = new Set<string>();
    const apply = (changes: readonly Change[]): void => {
      if (changes.length === 0) return;
      begin();
      for (const { id, document } of changes) {
        if (!document) {
          gone.add(id);
          if (shown.delete(id)) write({ type: 'delete', key: id });
          // The stream may be behind the answer to an own change.
        } else if (!(versions.get(id)! > document.updatedAt)) {
          versions.set(id, document.updatedAt as string);
          write({ type: shown.has(id) ? 'update' : 'insert', value: document });
          shown.add(id);
        }
      }
      void commit();
    };
    // An answer may be behind the stream, too.
    answer = (results) => apply(results.filter(({ id }) => !gone.has(id)));
    let news: Change[] = [];
    return untyped.collection(at).follow({ ...(filter && { filter }) }, (event) => {
      if (event.type === 'upsert') {
        gone.delete(event.id);
        news.push(event);
      }
      if (event.type === 'gone') {
        versions.delete(event.id);
        news.push({ id: event.id, document: null });
      }
      if (event.type === 'ready') {
        apply(news);
        news = [];
        markReady();
      }
      if (event.type === 'error') markError(event.error);
      if (event.type === 'reset') {
        // At once: they may be those of a user who has signed out.
        news = [];
        [versions, shown, gone].forEach((known) => known.clear());
        begin();
        truncate({ markReady: false });
        void commit();
      }
    });
  };

  const store = async ({ transaction }: { transaction: { mutations: readonly PendingMutation<Doc>[] } }) => {
    const results = await untyped.batch((batch) => {
      const documents = batch.collection(at);
      for (const { type, key, modified, changes } of transaction.mutations) {
        if (type === 'insert') documents.insert(modified);
        else if (type === 'delete') documents.remove(key as string);
        else documents.update(key as string, cleared(changes));
      }
    });
    // Stays shown when the mutation is over.
    answer?.(results);
  };

  return {
    id: `bsvc-${name}-${JSON.stringify(filter ?? {})}`,
    getKey: ({ _id }: Doc) => _id,
    sync: { sync, rowUpdateMode: 'full' },
    ...{ onInsert: store, onUpdate: store, onDelete: store },
  } as never;
}

/** A field without a value is cleared. */
const cleared = (changes: object): object =>
  Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, value ?? null]));
