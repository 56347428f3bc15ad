import { parseBulkQuery, type BulkQuery } from '../../../src/features/documents/query/parse-bulk-query.js';
import type { WriteTarget } from '../../../src/features/documents/write/write-target.js';
import type { Context } from '../../shell/context.js';
import { UsageError } from '../../view/exit.js';
import type { Result } from '../../view/output.js';

interface Which {
  isRemoval?: boolean;
  permanent?: boolean;
  onlyDeleted?: boolean;
}

/**
 * True for a command line with filters, false for one with the id of a document. A usage error names what is missing,
 * or an option of the other form.
 */
export function chooseByFilter(
  id: string | undefined,
  filters: readonly unknown[],
  ofFilters: Record<string, unknown>,
  ofOne: Record<string, unknown>,
): boolean {
  const byFilter = filters.length > 0;
  if (byFilter === (id !== undefined)) throw new UsageError('Give either the id of one document, or --filter.');
  const [other] = Object.entries(byFilter ? ofOne : ofFilters).find(([, given]) => given) ?? [];
  if (other === undefined) return byFilter;
  const flag = other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new UsageError(`--${flag} goes with ${byFilter ? 'the id of one document' : '--filter'}.`);
}

/** The filters of a command as the query of a request; 400 as of that. */
export function readFilters(
  { collection }: WriteTarget,
  filters: readonly [name: string, value: string][],
  { isRemoval = false, permanent = false, onlyDeleted = false }: Which,
): BulkQuery {
  const query = new URLSearchParams(filters.map(([name, value]): [string, string] => [`filter[${name}]`, value]));
  if (permanent) query.set('permanent', 'true');
  if (onlyDeleted) query.set('include_deleted', 'only');
  return parseBulkQuery(query.toString(), collection, isRemoval);
}

/** Asks with the number of documents; the name to type is the collection's. */
export async function confirmMatching(
  context: Context,
  { collection: { name } }: WriteTarget,
  count: number,
  { does, reversible }: { does: string; reversible: boolean },
): Promise<void> {
  if (count === 0) return;
  await context.confirm({ what: `${does} ${count} ${documents(count)} of "${name}".`, name, reversible });
}

export function presentMatching(json: Record<string, number>, count: number, done: string): Result {
  return { json, quiet: count, text: () => `${count} ${documents(count)} ${done}.` };
}

const documents = (count: number): string => (count === 1 ? 'document' : 'documents');
