import type { Refusal } from '../../api.js';
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
export function usePage(documents: string, listing: Listing, columns: readonly GridColumn[] | null): Page {
  const path = columns ? `${documents}?${pageQuery(listing, columns)}` : null;
  const { data, ...rest } = useLoad<{ items: ShownFields[]; total: number; nextCursor: string | null }>(path);
  return { rows: data?.items ?? null, total: data?.total ?? null, next: data?.nextCursor ?? null, ...rest };
}
