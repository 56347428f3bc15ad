import type { Refusal } from '../../api.js';
import { withQuery } from '../../api-paths.js';
import type { DocumentsPath } from '../../collection.js';
import { useLoad } from '../../load.js';
import type { ShownFields } from '../document-fields.js';
import type { GridColumn } from './grid-columns.js';
import { pageQuery, type Listing } from './listing.js';

export interface Page {
  rows: readonly ShownFields[] | null;
  /** How many match in all, where that is known. */
  total: number | null;
  /** Where the next page begins; null at the end. */
  next: string | null;
  error: Refusal | null;
  loading: boolean;
  ms: number;
  reload: () => void;
}

/** A page of documents: of active ones, or of the trash alone. */
export function usePage(documents: DocumentsPath, listing: Listing, columns: readonly GridColumn[] | null): Page {
  const { data, ...rest } = useLoad(columns && withQuery(documents, pageQuery(listing, columns)));
  // Nobody has asked for their count alone.
  const page = data && 'items' in data ? data : null;
  return { rows: page?.items ?? null, total: page?.total ?? null, next: page?.nextCursor ?? null, ...rest };
}
