import type { App } from '../../app.js';
import { conflict, invalid } from '../../errors.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { checkProjectName } from './create-project.js';
import type { TokenAlgorithm } from '../../platform/secrets/jwt.js';
import type { PlanName, Project, TokenSecret } from './project.js';
import { changeProjectList, requireProject, updateProjectRecord } from './project-store.js';
import { readSignInChanges, type SignInSettings, tokenAlgorithmOf } from './sign-in-settings.js';
import { withNewSecret } from './token-secret.js';

export interface ProjectChanges {
  name?: string;
  plan?: PlanName;
  /** Replaces the allowlist; `*` alone admits every origin. */
  allowedDomains?: string[];
  /** Sets single limits; null returns one to the plan's value. */
  limits?: Record<string, number | null>;
  /**
   * True if publishable keys may upload and confirm files, and signed-in users delete with them the files they
   * uploaded.
   */
  publishableUploads?: boolean;
  /** Sets single sign-in methods. */
  signIn?: SignInSettings;
}

interface ProjectUpdate {
  $set: Partial<Project>;
  $unset: Record<string, ''>;
  /** How access tokens are to be signed; undefined: as they are. */
  tokens?: TokenAlgorithm | undefined;
}

const DOMAIN_ENTRY = /^(\*|(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?|https?:\/\/[a-z0-9.-]+(:\d{1,5})?)$/i;

/** Changes a project by one write. 400 for a bad value or nothing to change, 404, 409 when the name is taken. */
export async function updateProject(app: App, idOrName: string, changes: ProjectChanges): Promise<Project> {
  const update = readProjectChanges(changes);
  const project = await requireProject(app, idOrName);
  requireChange(update);
  return saveProjectChanges(app, project, update, changes);
}

/** 400 when there is nothing to change. */
export function requireChange({ $set, $unset, tokens }: ProjectUpdate): void {
  if (tokens !== undefined || Object.keys($set).length + Object.keys($unset).length > 0) return;
  throw invalid('INVALID_BODY', 'There is nothing to change');
}

/** Stores changes by one write; 409 when another project has the name. */
export async function saveProjectChanges(
  app: App,
  project: Project,
  { $set, $unset, tokens }: ProjectUpdate,
  { name }: ProjectChanges,
): Promise<Project> {
  const update = { $set, ...(Object.keys($unset).length > 0 && { $unset }) };
  const saved = await unlessDuplicate(
    tokens === undefined
      ? updateProjectRecord(app, project._id, update)
      : changeProjectList(
          app,
          project,
          'tokenSecrets',
          (current, nowMs) => signBy(app, project, tokens, current, nowMs),
          update,
        ),
  );
  if (!saved) throw conflict('PROJECT_EXISTS', `There is already a project "${name}"`);
  return saved;
}

/** The list with a secret of the algorithm at its end; older tokens work until the last of them has expired. */
function signBy(
  app: App,
  { _id }: Project,
  algorithm: TokenAlgorithm,
  current: TokenSecret[],
  nowMs: number,
): TokenSecret[] {
  if (tokenAlgorithmOf({ tokenSecrets: current }) === algorithm) return current;
  return withNewSecret(app, _id, current, { algorithm, graceMs: app.config.accessTokenTtlMs, nowMs });
}

/** The changes as an update of a project's record. Pure; 400 for a bad value. */
export function readProjectChanges(changes: ProjectChanges): ProjectUpdate {
  if (changes.name !== undefined) checkProjectName(changes.name);
  const $set: Record<string, unknown> = {};
  const $unset: Record<string, ''> = {};
  if (changes.name !== undefined) $set.name = changes.name;
  if (changes.plan !== undefined) $set.plan = changes.plan;
  if (changes.allowedDomains !== undefined) $set.allowedDomains = changes.allowedDomains.map(readDomain);
  if (changes.publishableUploads !== undefined) $set['storage.publishableUploads'] = changes.publishableUploads;
  if (changes.signIn !== undefined) Object.assign($set, readSignInChanges(changes.signIn));
  for (const [name, value] of Object.entries(changes.limits ?? {})) {
    if (!/^[A-Za-z]{1,40}$/.test(name)) throw invalid('INVALID_LIMIT', `"${name}" is not the name of a limit`);
    if (value === null) $unset[`limits.${name}`] = '';
    else if (Number.isSafeInteger(value) && value >= 0) $set[`limits.${name}`] = value;
    else throw invalid('INVALID_LIMIT', `The limit ${name} must be a whole number, 0 or more`);
  }
  return { $set, $unset, tokens: changes.signIn?.tokens };
}

/** An entry of the allowlist as it is stored. 400 for what is none. */
export function readDomain(entry: string): string {
  const isOrigin = entry.includes('://');
  if (!DOMAIN_ENTRY.test(entry) || (isOrigin && !URL.canParse(entry))) {
    throw invalid('INVALID_DOMAIN', `"${entry}" is not an origin (https://app.example.com), a host, *.base or *`);
  }
  // Browsers leave a scheme's own port out.
  return isOrigin ? new URL(entry).origin : entry.toLowerCase();
}
