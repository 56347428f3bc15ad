import { useLayoutEffect, useState } from 'preact/hooks';
import { api, refusalOf, type Refusal } from '../../api.js';
import type { CollectionField } from '../../collection.js';
import { useLoad } from '../../load.js';
import type { ShownFields } from '../document-fields.js';
import type { GridColumn } from './grid-columns.js';
import { pageQuery, type Listing } from './listing.js';
import { matchOf } from './match-of.js';

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

/** A page of active documents. */
export function useActivePage(documents: string, listing: Listing, columns: readonly GridColumn[] | null): Page {
  const path = columns && !listing.isTrash ? `${documents}?${pageQuery(listing, columns)}` : null;
  const { data, ...rest } = useLoad<{ items: ShownFields[]; total: number; nextCursor: string | null }>(path);
  return { rows: data?.items ?? null, total: data?.total ?? null, next: data?.nextCursor ?? null, ...rest };
}

interface Answered {
  asked: string;
  rows: ShownFields[];
}

/** A page of the trash, the last thrown away first. Lists show it among the rest: a pipeline can ask for it alone. */
export function useTrashPage(documents: string, listing: Listing, fields: readonly CollectionField[]): Page {
  const [turn, setTurn] = useState(0);
  const [answered, setAnswered] = useState<Answered | null>(null);
  const [error, setError] = useState<Refusal | null>(null);
  const asked = listing.isTrash ? JSON.stringify({ pipeline: trashPipeline(listing, fields) }) : null;
  useLayoutEffect(() => {
    if (asked === null) return undefined;
    const ending = new AbortController();
    const path = `${documents}/aggregate?include_deleted=true`;
    api<ShownFields[]>('POST', path, JSON.parse(asked), { signal: ending.signal }).then(
      (rows) => {
        setAnswered({ asked, rows });
        setError(null);
      },
      (refused: unknown) => ending.signal.aborted || setError(refusalOf(refused)),
    );
    return () => ending.abort();
  }, [documents, asked, turn]);
  const { size, skip } = listing;
  const rows = answered?.rows ?? null;
  return {
    rows: rows && rows.slice(0, size).map((row) => ({ ...row, isDeleted: true })),
    total: null,
    next: rows && rows.length > size ? String(skip + size) : null,
    error,
    loading: asked !== null && !error && answered?.asked !== asked,
    ms: 0,
    reload: () => setTurn((n) => n + 1),
  };
}

export function trashPipeline({ filters, size, skip }: Listing, fields: readonly CollectionField[]): object[] {
  return [
    { $match: { isDeleted: true, ...matchOf(filters, fields) } },
    { $sort: { deletedAt: -1, _id: -1 } },
    ...(skip > 0 ? [{ $skip: skip }] : []),
    { $limit: size + 1 },
  ];
}
