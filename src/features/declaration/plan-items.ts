import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Project } from '../projects/project.js';
import type { FindSecret } from './project-declaration.js';

/** What `bsvc.yaml` lists by name, with the words that messages put before the name. */
export const ITEM_WORDS = {
  provider: 'sign-in provider',
  template: 'template',
  webhook: 'webhook',
  hook: 'hook of',
  schedule: 'schedule',
} as const;

/** Carries a change out; the secret of a new address, which is shown once. */
type Apply = (project: Project) => Promise<string | null>;

/** An item of a project that a plan adds, changes or drops. */
export interface ItemChange {
  action: 'add' | 'change' | 'drop';
  kind: keyof typeof ITEM_WORDS;
  name: string;
  /** One line per difference. */
  what?: string[];
  /** Those of them that grant more access. */
  loosens?: string[];
  /** Collections that its events name. */
  collections?: string[];
  apply: Apply;
}

export interface PlanContext {
  app: App;
  /** null: it has to be created. */
  project: Project | null;
  /** Items that the declaration does not name go. */
  prune: boolean;
  secretOf: FindSecret;
}

/** How one kind of item is found, compared, changed and declared. */
export interface Kind<Declared, Stored> {
  kind: ItemChange['kind'];
  list(this: void, app: App, project: Project): Promise<Stored[]>;
  nameOf(this: void, item: Declared | Stored): string;
  /** What makes an item as it is declared; without differences (`what`) a stored one stays. 400 for a bad one. */
  compare(
    this: void,
    declared: Declared,
    stored: Stored | undefined,
    context: PlanContext,
  ): Pick<ItemChange, 'what' | 'loosens' | 'collections' | 'apply'>;
  remove(this: void, app: App, project: Project, stored: Stored): Promise<unknown>;
}

/**
 * The difference between a project's items of one kind and the declared ones, by name; none without a declaration.
 * Those not named go only with `prune`. 400 for a bad one.
 */
export async function planItems<Declared, Stored>(
  { kind, list, nameOf, compare, remove }: Kind<Declared, Stored>,
  declared: readonly Declared[] | undefined,
  context: PlanContext,
): Promise<ItemChange[]> {
  if (!declared) return [];
  const { app, project, prune } = context;
  const existing = project ? await list(app, project) : [];
  const changes: ItemChange[] = [];
  const named = new Set<string>();
  for (const item of declared) {
    const name = nameOf(item);
    if (named.has(name)) throw invalid('INVALID_FILE', `The ${ITEM_WORDS[kind]} "${name}" is declared twice`);
    named.add(name);
    const stored = existing.find((other) => nameOf(other) === name);
    const change = compare(item, stored, context);
    if (!stored) changes.push({ action: 'add', kind, name, ...change });
    else if (change.what?.length) changes.push({ action: 'change', kind, name, ...change });
  }
  for (const stored of prune ? existing : []) {
    const name = nameOf(stored);
    if (named.has(name)) continue;
    const apply: Apply = async (current) => {
      await remove(app, current, stored);
      return null;
    };
    changes.push({ action: 'drop', kind, name, apply });
  }
  return changes;
}

/** One line for each named part that differs. */
export function listDifferent<Part extends string>(
  labels: Readonly<Record<Part, string>>,
  [before, after]: readonly [Partial<Record<NoInfer<Part>, unknown>>, Partial<Record<NoInfer<Part>, unknown>>],
): string[] {
  return (Object.keys(labels) as Part[])
    .filter((part) => !isDeepStrictEqual(before[part] ?? null, after[part] ?? null))
    .map((part) => `${labels[part]}: ${show(before[part])} -> ${show(after[part])}`);
}

const show = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? 'none' : JSON.stringify(value);
