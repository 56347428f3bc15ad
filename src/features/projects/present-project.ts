import { isLiveKey, type ApiKey, type Project } from './project.js';
import { signInOf } from './sign-in-settings.js';

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
