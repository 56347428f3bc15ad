import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Project } from '../projects/project.js';
import {
  listSocialProviders,
  openClientSecret,
  providerSettings,
  resolveProvider,
  type ProviderSettings,
  type SocialProviderInput,
} from '../users/social/social-provider.js';
import { type ProviderDeclaration, resolveSecret, type FindSecret } from './project-declaration.js';

export type ProviderChange =
  | { action: 'add' | 'change'; name: string; what: string[]; loosens: string[]; to: SocialProviderInput }
  | { action: 'drop'; name: string };

/**
 * The difference between a project's sign-in providers and the declared ones; none without a declaration. Those not
 * named go only with `prune`. 400 for a bad one.
 */
export async function planProviders(
  app: App,
  project: Project | null,
  declared: readonly ProviderDeclaration[] | undefined,
  { prune, secretOf }: { prune: boolean; secretOf: FindSecret },
): Promise<ProviderChange[]> {
  if (!declared) return [];
  const existing = project ? await listSocialProviders(app, project) : [];
  const changes: ProviderChange[] = [];
  const named = new Set<string>();
  for (const { clientSecret, ...settings } of declared) {
    const { name } = settings;
    if (named.has(name)) throw invalid('INVALID_FILE', `The sign-in provider "${name}" is declared twice`);
    named.add(name);
    const present = existing.find((provider) => provider.name === name);
    const before = present && providerSettings(present);
    const to = {
      ...(before && { ...before, apple: before.apple ?? undefined }),
      ...settings,
      clientSecret: resolveSecret(clientSecret, secretOf),
      // Who applies a file runs the whole service.
      mayBePrivate: true,
    };
    const wanted = resolveProvider(to);
    if (!present || !before) {
      // In a project that is only being made nothing can be lost.
      const loosens = project ? [`sign-in provider ${name}`] : [];
      changes.push({ action: 'add', name, what: [wanted.issuer], loosens, to });
      continue;
    }
    const isKept = openClientSecret(app, present) === to.clientSecret;
    const what = [...listDifferences(before, wanted), ...(isKept ? [] : ['client secret: another one'])];
    if (what.length > 0) changes.push({ action: 'change', name, what, loosens: listLoosened(before, wanted), to });
  }
  const dropped = prune ? existing.filter(({ name }) => !named.has(name)) : [];
  return [...changes, ...dropped.map(({ name }) => ({ action: 'drop' as const, name }))];
}

const LABELS = {
  issuer: 'issuer',
  clientId: 'client id',
  apple: 'key of apple',
  appClientIds: 'client ids of apps',
  scopes: 'scopes',
  redirectUrls: 'addresses to return to',
  tokenInAddress: 'token in the address',
} as const;
type Label = keyof typeof LABELS;

function listDifferences(before: ProviderSettings, wanted: ProviderSettings): string[] {
  return (Object.keys(LABELS) as Label[])
    .filter((name) => !isDeepStrictEqual(before[name], wanted[name]))
    .map((name) => `${LABELS[name]}: ${show(before[name])} -> ${show(wanted[name])}`);
}

const show = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Whose word for a user counts from now on, and where else browsers are sent with what that made. */
function listLoosened(before: ProviderSettings, wanted: ProviderSettings): string[] {
  const isMore = (name: 'appClientIds' | 'redirectUrls'): boolean =>
    wanted[name].some((each) => !before[name].includes(each));
  const loosened: Record<string, boolean> = {
    issuer: wanted.issuer !== before.issuer,
    clientId: wanted.clientId !== before.clientId,
    appClientIds: isMore('appClientIds'),
    redirectUrls: isMore('redirectUrls'),
    tokenInAddress: wanted.tokenInAddress && !before.tokenInAddress,
  };
  return (Object.keys(LABELS) as Label[])
    .filter((name) => loosened[name])
    .map((name) => `sign-in provider ${wanted.name}: ${LABELS[name]}`);
}
