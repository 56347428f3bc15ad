import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { ROUTE_LISTS } from '../../src/api.js';
import type { Refusals } from '../../src/http/routes/route.js';
import { gatherRefusals } from './seen-refusals.js';

const API_TESTS = join(import.meta.dirname, '..', 'api');

/**
 * What a race, a fault of somebody else, a lack of time or room, or an installation without its build brings about, by
 * code or by operation and code: tests bring it about below the API, or at one operation that stands for the others.
 */
const SELDOM: ReadonlySet<string> = new Set([
  'BATCH_ABANDONED',
  'BUSY',
  'CHANGED_MEANWHILE',
  'DOCUMENT_CHANGING',
  'DOCUMENT_TOO_LARGE',
  'MAIL_PROVIDER_UNAVAILABLE',
  'MFA_ENROLMENT_REQUIRED',
  'QUERY_TIMEOUT',
  'QUERY_TOO_LARGE',
  'RATE_LIMITED',
  'RECOUNT_BUSY',
  'REQUEST_TIMEOUT',
  'RESULT_TOO_LARGE',
  'STORAGE_REFUSED',
  'STORAGE_UNAVAILABLE',
  'confirmUpload FILE_TOO_LARGE',
  'aggregateDocuments INVALID_QUERY',
  'createBroadcast NOT_FOUND',
  'exchangeSocialCode INVALID_CREDENTIALS',
  'logInByCode INVALID_CREDENTIALS',
  'logInWithFactor INVALID_CREDENTIALS',
  'getClient NOT_FOUND',
  'getClientPackage NOT_FOUND',
  'getClientTypes NOT_FOUND',
  'importDocuments QUOTA_EXCEEDED',
  'insertDocuments BATCH_TOO_LARGE',
  'listAudiences INVALID_MAIL',
  'passOnSocialForm INVALID_BODY',
  'sendBroadcast INVALID_MAIL',
  'sendMailBatch BATCH_UNCERTAIN',
  'signUp INVALID_CREDENTIALS',
  'uploadFile FILE_NOT_FOUND',
]);

/**
 * Around a run of tests. Once all those of the API have run, in this one or in those before it that gathered in the
 * same directory, it fails unless every refusal that the API's document lists was met: a list that says too much is no
 * better than one that says too little.
 */
export default function demandRefusals({ vitest }: TestProject): () => void {
  const gathered = gatherRefusals();
  return () => {
    const { met, ran } = gathered(vitest.state.getFilepaths());
    const all = readdirSync(API_TESTS, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.test.ts'),
    );
    if (!all.every((name) => ran.has(join(API_TESTS, name)))) return;
    const unmet = listUnmet(met);
    if (unmet.length === 0) return;
    console.error(`No test has met these refusals, which the API's document lists:\n  ${unmet.join('\n  ')}`);
    process.exitCode = 1;
  };
}

/**
 * Refusals as `operationId CODE` that are described and not in `met`: those of an operation itself, and of what guards
 * many of them one at least.
 */
export function listUnmet(met: ReadonlySet<string>): string[] {
  const codesMet = new Set([...met].map((line) => line.split(' ')[1]!));
  const unmet = new Set<string>();
  for (const [refuses, ids] of listSharing()) {
    for (const code of codesOf(refuses)) {
      if (SELDOM.has(code) || SELDOM.has(`${ids[0]} ${code}`)) continue;
      if (!ids.some((id) => met.has(`${id} ${code}`))) unmet.add(`${ids.join(', ')} ${code}`);
    }
  }
  for (const { params, routes } of ROUTE_LISTS) {
    for (const { access, params: own } of routes) {
      const guards = [access.refuses, ...Object.values({ ...params, ...own }).map(({ refuses = {} }) => refuses)];
      for (const code of guards.flatMap(codesOf)) if (!codesMet.has(code)) unmet.add(`any operation ${code}`);
    }
  }
  return [...unmet];
}

/** The operations that share each list of refusals, and so the code that refuses. */
function listSharing(): Map<Refusals, string[]> {
  const sharing = new Map<Refusals, string[]>();
  for (const { routes } of ROUTE_LISTS) {
    for (const { id, refuses } of routes) {
      if (refuses) sharing.set(refuses, [...(sharing.get(refuses) ?? []), id]);
    }
  }
  return sharing;
}

const codesOf = (refuses: Refusals): string[] => Object.values(refuses).flat();
