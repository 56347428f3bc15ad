import type { PlanName, Project } from '../projects/project.js';

const MIB = 1024 * 1024;

/** The limits of a plan; null = unlimited. The names are those of `bsvc project update --limit name=value`. */
interface PlanLimits {
  /** Messages per calendar month. */
  mail: number | null;
  /** Registered data webhooks. */
  webhooks: number | null;
  /** Bytes of confirmed files in the service's own storage. */
  storage: number | null;
  /** Bytes of documents. */
  database: number | null;
  /** Streams of changes that are open in a process. */
  streams: number | null;
  /** Percent of `storage` and `database` that one signed-in user may fill. */
  userShare: number | null;
}

export type LimitName = keyof PlanLimits;

/** decisions.md 9. */
const PLAN_LIMITS: Readonly<Record<PlanName, PlanLimits>> = {
  free: { mail: 50, webhooks: 3, storage: 100 * MIB, database: 50 * MIB, streams: 1_000, userShare: 50 },
  pro: { mail: 1_000, webhooks: null, storage: 5 * 1024 * MIB, database: 5 * 1024 * MIB, streams: null, userShare: 50 },
};

/** The limits that are counted in bytes. */
export const BYTE_LIMITS: readonly string[] = ['storage', 'database'] satisfies LimitName[];

export const LIMIT_NAMES = Object.keys(PLAN_LIMITS.free) as readonly LimitName[];

/**
 * Requests of one client address, of one signed-in user, and sign-ins of one address, within the windows of
 * `BSVC_RATE_LIMIT` and `BSVC_AUTH_RATE_LIMIT`; the settings stand for every plan.
 */
const RATE_LIMIT_NAMES = ['requests', 'userRequests', 'authRequests'] as const;
export type RateLimitName = (typeof RATE_LIMIT_NAMES)[number];

/** The names of limits that a project can override. */
export const OVERRIDABLE_LIMITS: readonly string[] = [...LIMIT_NAMES, ...RATE_LIMIT_NAMES];

/** The project's own limit of that name, else its plan's; null = unlimited. Bytes for storage and database. */
export function findLimit(project: Pick<Project, 'plan' | 'limits'>, name: LimitName): number | null {
  return Object.hasOwn(project.limits, name) ? project.limits[name]! : PLAN_LIMITS[project.plan][name];
}

/** The bytes of a project's storage or database that one user may fill; null = as many as there are. */
export function findUserShare(project: Pick<Project, 'plan' | 'limits'>, name: 'storage' | 'database'): number | null {
  const limit = findLimit(project, name);
  const percent = findLimit(project, 'userShare');
  return limit === null || percent === null || percent >= 100 ? null : Math.floor((limit * percent) / 100);
}
