import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, invalid } from '../../errors.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { generateKey, type PlanName, type Project } from './project.js';
import { findProject, projectStore } from './project-store.js';
import { generateTokenSecret } from './token-secret.js';

const PROJECT_NAME = /^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$/;

export interface NewProject {
  name: string;
  plan?: PlanName;
  /** Answer an existing project of that name instead of refusing. */
  ifNotExists?: boolean;
}

export interface CreatedProject {
  project: Project;
  /** Shown once; null when the project was there already. */
  keys: { publishable: string; secret: string } | null;
  created: boolean;
}

/**
 * Creates a project with one key of each type by a single write. 400 for a bad name, 409 PROJECT_EXISTS unless
 * `ifNotExists`.
 */
export async function createProject(app: App, input: NewProject): Promise<CreatedProject> {
  checkProjectName(input.name);
  const nowMs = app.clock.now();
  const publishable = generateKey('publishable', nowMs);
  const secret = generateKey('secret', nowMs);
  const id = new ObjectId();
  const project: Project = {
    _id: id,
    name: input.name,
    plan: input.plan ?? 'free',
    keys: [publishable.key, secret.key],
    tokenSecrets: [generateTokenSecret(app, id)],
    allowedDomains: ['*'],
    limits: {},
    state: 'active',
    createdAt: new Date(nowMs),
    updatedAt: new Date(nowMs),
  };
  if (!(await unlessDuplicate(projectStore(app).insertOne(project)))) {
    const existing = input.ifNotExists ? await findProject(app, input.name) : null;
    if (existing) return { project: existing, keys: null, created: false };
    throw conflict('PROJECT_EXISTS', `There is already a project "${input.name}"`);
  }
  return { project, keys: { publishable: publishable.value, secret: secret.value }, created: true };
}

/** 400 unless the name can be typed, printed and distinguished from an id. */
export function checkProjectName(name: string): void {
  if (!PROJECT_NAME.test(name) || name !== name.trim() || /^[0-9a-f]{24}$/i.test(name)) {
    throw invalid(
      'INVALID_NAME',
      'A project name has 1 to 64 letters, digits, spaces or . _ - and starts with a letter or digit',
    );
  }
}
