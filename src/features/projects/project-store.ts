import type { UpdateFilter } from 'mongodb';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { storeOf } from '../../platform/database/database.js';
import { findObjectId } from '../../platform/ids.js';
import { isLiveKey, type ApiKey, type Project } from './project.js';
import { cacheRegion } from '../../platform/cache.js';
import { signInOf } from './sign-in-settings.js';

/** A live key with its project, as requests share them. */
export interface KeyOwner {
  project: Project;
  key: ApiKey;
}

/** Owners of keys, by the hash of the key. */
export const CALLERS = cacheRegion<KeyOwner>('callers');

export const PROJECTS = 'projects';

export const projectStore = storeOf<Project>(PROJECTS);

/** The active project with that id or name, or null. A name that looks like an id is still found. */
export async function findProject(app: Pick<App, 'db'>, idOrName: string): Promise<Project | null> {
  const id = findObjectId(idOrName);
  const found = id ? await projectStore(app).findOne({ _id: id, state: 'active' }) : null;
  return found ?? (await projectStore(app).findOne({ name: idOrName, state: 'active' }));
}

/** findProject with 404 when there is none. */
export async function requireProject(app: Pick<App, 'db'>, idOrName: string): Promise<Project> {
  const project = await findProject(app, idOrName);
  if (!project) throw noProject(idOrName);
  return project;
}

/** The 404 for an id or name that no project has. */
export function noProject(idOrName: string): Error {
  return missing('PROJECT_NOT_FOUND', `There is no project "${idOrName}"`);
}

/**
 * Compare-and-swap on a list of one active project, so that two changes at once both take effect; `more` is set by the
 * same write. Returns the project as it is afterwards; 404 when it is gone.
 */
export async function changeProjectList<Name extends 'keys' | 'tokenSecrets' | 'hooks'>(
  app: App,
  { _id }: Project,
  name: Name,
  change: (list: Project[Name], nowMs: number) => Project[Name],
  more: ProjectWrite = {},
): Promise<Project> {
  for (;;) {
    const current = await projectStore(app).findOne({ _id, state: 'active' });
    if (!current) throw projectGone();
    const nowMs = app.clock.now();
    const list = change(current[name], nowMs);
    const changed = await projectStore(app).findOneAndUpdate(
      { _id, state: 'active', [name]: current[name] ?? { $exists: false } },
      { ...more, $set: { ...more.$set, [name]: list, updatedAt: new Date(nowMs) } },
      { returnDocument: 'after' },
    );
    if (!changed) continue;
    app.cache.forgetAll(CALLERS);
    return changed;
  }
}

type ProjectWrite = Pick<UpdateFilter<Project>, '$set' | '$unset'>;

const projectGone = (): Error => missing('PROJECT_NOT_FOUND', 'The project no longer exists');

/** Sets fields of one active project in one write and returns it as it is afterwards; 404 when it is gone. */
export async function updateProjectRecord(app: App, id: ObjectId, change: ProjectWrite): Promise<Project> {
  const updated = await projectStore(app).findOneAndUpdate(
    { _id: id, state: 'active' },
    { ...change, $set: { ...change.$set, updatedAt: new Date(app.clock.now()) } },
    { returnDocument: 'after' },
  );
  if (!updated) throw projectGone();
  app.cache.forgetAll(CALLERS);
  return updated;
}

/** All active projects by name. */
export function listProjects(app: Pick<App, 'db'>): Promise<Project[]> {
  return projectStore(app).find({ state: 'active' }).sort({ name: 1 }).toArray();
}

/** A project as HTTP and command line show it: never keys' hashes or encrypted secrets. */
export function presentProject(project: Project) {
  return {
    id: project._id.toHexString(),
    name: project.name,
    plan: project.plan,
    allowedDomains: project.allowedDomains,
    limits: project.limits,
    signIn: signInOf(project),
    createdAt: project.createdAt.toISOString(),
    updatedAt: project.updatedAt.toISOString(),
  };
}

/** A key as shown after its creation. */
export function presentKey(key: ApiKey, nowMs: number) {
  return {
    id: key.id.toHexString(),
    type: key.type,
    name: key.name ?? null,
    last4: key.last4,
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
    lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
    live: isLiveKey(key, nowMs),
  };
}
