import type { TokenAlgorithm } from '../../platform/secrets/jwt.js';

/** A token secret, as far as its algorithm goes; absent = HS256. */
interface WithAlgorithm {
  algorithm?: TokenAlgorithm;
}

/** The algorithm that new access tokens of a project are signed with: its newest secret's. */
export function tokenAlgorithmOf({ tokenSecrets }: { tokenSecrets: readonly WithAlgorithm[] }): TokenAlgorithm {
  return tokenSecrets.at(-1)?.algorithm ?? 'HS256';
}
