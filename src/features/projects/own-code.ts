import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, invalid } from '../../errors.js';
import type { OwnCodeSettings } from '../../platform/processes/own-code.js';
import { generateKey, isLiveKey, type Project } from './project.js';
import { changeProjectList, projectStore, updateProjectRecord } from './project-store.js';

/** The stored collection of calls at a time, whose files are in the same folder. */
export const SCHEDULED_CALLS = 'schedules';

export const ownKeyContext = (projectId: ObjectId): string => `project:${projectId.toHexString()}:own-code`;

/** The name of the key with which own code calls the API. */
const KEY_NAME = 'own code';
const MAX_ENV = 50;
/** The service's own, whose values are not a project's to see. */
const OF_SERVICE = /^(BSVC_.*|MONGODB_.*|REDIS_.*|RESEND_.*|PROVIDER_WEBHOOK_.*|NODE_OPTIONS|LD_.*|AWS_.*|OTEL_.*)$/;

/** The folder of a project's files; null where it has none. */
function ownFolder({ config }: Pick<App, 'config'>, { name, ownCode }: Project): string | null {
  return config.hooksDir === null ? (ownCode?.dir ?? null) : join(config.hooksDir, name);
}

/** Whether a project has a folder of files: what is not there starts no process. */
export function hasOwnCode(app: Pick<App, 'config'>, project: Project): boolean {
  const dir = ownFolder(app, project);
  return dir !== null && existsSync(dir);
}

/** How the process of a project's own code is started. */
export function ownCodeSettings(app: App, projectId: ObjectId): () => Promise<OwnCodeSettings> {
  return async () => {
    const project = await projectStore(app).findOne({ _id: projectId, state: 'active' });
    const dir = project && ownFolder(app, project);
    if (!project || dir === null) throw invalid('INVALID_HOOK', 'The project has no folder of own code');
    const names = project.ownCode?.env ?? [];
    const env = names.flatMap((name) => {
      const value = app.ownCode.variable(name);
      return value === undefined ? [] : [[name, value] as const];
    });
    return { dir, env: Object.fromEntries(env), memoryMb: app.config.hooksMemoryMb, key: await openKey(app, project) };
  };
}

/** The secret key of own code; a new one where it was revoked. */
async function openKey(app: App, project: Project): Promise<string> {
  const encrypted = project.ownCode?.key;
  const known = project.keys.find(({ id }) => id.equals(project.ownCode?.keyId));
  const nowMs = app.clock.now();
  if (encrypted !== undefined && known && isLiveKey(known, nowMs)) {
    return app.secrets.decrypt(encrypted, ownKeyContext(project._id));
  }
  const { key, value } = generateKey('secret', nowMs, KEY_NAME);
  const $set = {
    'ownCode.key': app.secrets.encrypt(value, ownKeyContext(project._id)),
    'ownCode.keyId': key.id,
  };
  await changeProjectList(app, project, 'keys', (keys) => [...keys, key], { $set });
  return value;
}

/**
 * What a `run` names, `<file>#<handler>` in the project's folder; a path says which folder that is. 409 OWN_CODE_FOLDER
 * for another one than that of the project's other files.
 */
export async function requireOwnFile(app: App, project: Project, run: string, handler: string): Promise<string> {
  const named = readOwnFile(run, handler);
  if (isAbsolute(named.path) && app.config.hooksDir === null) await setFolder(app, project, dirname(named.path));
  return named.handler;
}

/** The parts of a `run`: its path, and `<file>#<handler>`. 400 INVALID_HOOK. */
export function readOwnFile(run: string, event: string): { path: string; handler: string } {
  const [path = '', name = event] = run.split('#');
  const file = basename(path);
  if (!/^[\w.-]+\.m?js$/.test(file) || !/^[^#\p{C}]{1,200}$/u.test(name)) {
    throw invalid(
      'INVALID_HOOK',
      'A file is named as ./hooks/orders.mjs or ./hooks/orders.mjs#handler, and is JavaScript',
    );
  }
  return { path, handler: `${file}#${name}` };
}

async function setFolder(app: App, project: Project, dir: string): Promise<void> {
  if (project.ownCode?.dir === dir) return;
  const usesOther =
    project.ownCode?.dir !== undefined &&
    ((project.hooks ?? []).length > 0 ||
      (await app.db.collection(SCHEDULED_CALLS).findOne({ projectId: project._id })) !== null);
  if (usesOther) {
    throw conflict('OWN_CODE_FOLDER', `All files of a project are in one folder, which is ${project.ownCode!.dir}`);
  }
  await setOwnFolder(app, project, dir);
}

/** Says where all files of a project are. */
export async function setOwnFolder(app: App, project: Project, dir: string): Promise<Project> {
  const changed = await updateProjectRecord(app, project._id, { $set: { 'ownCode.dir': dir } });
  app.ownCode.restart(project._id.toHexString());
  return changed;
}

/** Names the variables of the environment that own code sees. 400 for one of the service's own. */
export async function setOwnEnv(app: App, project: Project, names: readonly string[]): Promise<Project> {
  requireOwnEnv(names);
  return updateProjectRecord(app, project._id, { $set: { 'ownCode.env': [...new Set(names)] } });
}

/** 400 INVALID_ENV for names that own code is given no variables by. */
export function requireOwnEnv(names: readonly string[]): void {
  const bad = names.find((name) => !/^[A-Za-z_]\w{0,199}$/.test(name) || OF_SERVICE.test(name));
  if (bad !== undefined) throw invalid('INVALID_ENV', `Own code cannot be given the variable ${bad.slice(0, 200)}`);
  if (names.length > MAX_ENV) throw invalid('INVALID_ENV', `Own code is given at most ${MAX_ENV} variables`);
}
