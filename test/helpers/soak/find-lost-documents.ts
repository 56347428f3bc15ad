import type { DocumentBook, DocumentState } from './document-clients.js';
import { groupBy } from './group-by.js';

type Stored = Record<string, unknown>;

const stateOf = (document: Stored | undefined): DocumentState | string => {
  if (!document) return 'gone';
  return document.isDeleted === false ? 'active' : document.isDeleted === true ? 'trashed' : String(document.isDeleted);
};

/** What stored documents lack or have too much of, beside what their clients were answered. */
export function findLostDocuments(stored: readonly Stored[], books: readonly DocumentBook[]): string[] {
  const lost: string[] = [];
  const byTag = groupBy(stored, ({ tag }) => String(tag));
  for (const book of books) {
    const documents = byTag.get(book.tag) ?? [];
    if (documents.length > 1) lost.push(`note ${book.tag} is there ${documents.length} times`);
    const state = stateOf(documents[0]);
    const fits = book.mayBe.some((one) => one.state === state && (state === 'gone' || one.rev === documents[0]!.rev));
    if (!fits)
      lost.push(`note ${book.tag}: ${state} ${String(documents[0]?.rev)}, not one of ${JSON.stringify(book.mayBe)}`);
    byTag.delete(book.tag);
  }
  for (const tag of byTag.keys()) lost.push(`note ${tag} was never sent`);
  return lost;
}
