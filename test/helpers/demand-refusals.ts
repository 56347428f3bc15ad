import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { ROUTE_LISTS } from '../../src/api.js';
import type { RouteErrors } from '../../src/http/routes/route.js';
import { gatherRefusals } from './seen-refusals.js';

const API_TESTS = join(import.meta.dirname, '..', 'api');

/**
 * What a race, a fault of somebody else, or a lack of time or room brings about: tests bring it about below the API, or
 * now and then.
 */
const SELDOM: ReadonlySet<string> = new Set([
  'BUSY',
  'CHANGED_MEANWHILE',
  'DOCUMENT_CHANGING',
  'MAIL_PROVIDER_UNAVAILABLE',
  'QUERY_TIMEOUT',
  'QUERY_TOO_LARGE',
  'RECOUNT_BUSY',
  'REQUEST_TIMEOUT',
  'STORAGE_REFUSED',
]);

/**
 * Around a run of tests. Once all those of the API have run, in this one or in those before it that gathered in the
 * same directory, it fails unless every code that the API's document lists was met at some operation, and tells how
 * many lists of single operations name one that was not met there.
 */
export default function demandRefusals({ vitest }: TestProject): () => void {
  const gathered = gatherRefusals();
  return () => {
    const { met, ran } = gathered(vitest.state.getFilepaths());
    const all = readdirSync(API_TESTS, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.test.ts'),
    );
    if (!all.every((name) => ran.has(join(API_TESTS, name)))) return;
    const { codes, operations } = listUnmet(met);
    console.log(`RouteErrors that the API's document lists and no test met at their operation: ${operations.length}`);
    if (codes.length === 0) return;
    console.error(`No test has met these codes, which the API's document lists:\n  ${codes.join('\n  ')}`);
    process.exitCode = 1;
  };
}

interface Unmet {
  /** Met at no operation. */
  codes: string[];
  /** As `operationId CODE`: what an operation lists itself, not what guards many of them. */
  operations: string[];
}

/** The refusals that are described and not in `met`, which has them as `operationId CODE`. */
export function listUnmet(met: ReadonlySet<string>): Unmet {
  const codesMet = new Set([...met].map((line) => line.split(' ')[1]!));
  const codes = new Set<string>();
  const operations = new Set<string>();
  for (const { params, routes } of ROUTE_LISTS) {
    for (const { id, access, errors = {}, params: own } of routes) {
      const guards = [access.errors, ...Object.values({ ...params, ...own }).map(({ errors: of = {} }) => of)];
      for (const code of [...codesOf(errors), ...guards.flatMap(codesOf)]) {
        if (!codesMet.has(code) && !SELDOM.has(code)) codes.add(code);
      }
      for (const code of codesOf(errors)) if (!met.has(`${id} ${code}`)) operations.add(`${id} ${code}`);
    }
  }
  return { codes: [...codes], operations: [...operations] };
}

const codesOf = (errors: RouteErrors): string[] => Object.values(errors).flat();
