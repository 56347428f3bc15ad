import { ConfigError, type Config } from '../../src/config/config.js';
import { findWeakness } from '../../src/platform/secrets/weak-secret.js';

const MIN_KEY_CHARACTERS = 16;
const MIN_TOKEN_CHARACTERS = 12;

/**
 * Refuses to serve with a master key or an operators' token that can be guessed. Throws one ConfigError that lists
 * them.
 */
export function requireStrongSecrets({ secretKey, adminToken }: Config): void {
  const problems = [
    // Older keys only open what was encrypted with them; the first one encrypts.
    describe('BSVC_SECRET_KEY', secretKey?.split(',')[0]?.trim() ?? null, MIN_KEY_CHARACTERS),
    describe('BSVC_ADMIN_TOKEN', adminToken, MIN_TOKEN_CHARACTERS),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) throw new ConfigError(problems);
}

function describe(name: string, secret: string | null, leastCharacters: number): string | null {
  const weakness = secret === null ? null : findWeakness(secret, leastCharacters);
  return weakness && `${name} ${weakness}: set a random one, for example from "openssl rand -base64 32"`;
}
